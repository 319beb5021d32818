# expect: R28
import torch


class T:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, x, y, f):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        return loss.item()
