# expect: none
import torch


class T:
    def __init__(self, opts):
        self.opts = opts
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, loss):
        for opt in self.opts:
            opt.zero_grad()
        self.scaler.scale(loss).backward()
        for opt in self.opts:
            self.scaler.unscale_(opt)
            self.scaler.step(opt)
        self.scaler.update()
