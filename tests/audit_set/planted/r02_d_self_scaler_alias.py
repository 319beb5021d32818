# expect: R02
import torch


class Trainer:
    def __init__(self, model, opt, loss_fn):
        self.model = model
        self.opt = opt
        self.loss_fn = loss_fn
        self.scaler = torch.amp.GradScaler("cuda")

    def train_step(self, x, y):
        scaler = self.scaler
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss_fn(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        scaler.step(self.opt)
        scaler.update()
        return loss.detach()
