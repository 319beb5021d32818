# expect: R14
import torch
import torch.cuda.amp as amp


class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = amp.GradScaler()

    def step(self, x, y, loss_fn):
        self.opt.zero_grad()
        with torch.autocast("cuda"):
            loss = loss_fn(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
