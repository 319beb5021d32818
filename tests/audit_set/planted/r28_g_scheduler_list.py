# expect: R28
import torch
class T:
    def __init__(self, m, opts, n):
        self.m, self.opts = m, opts
        self.scheds = [torch.optim.lr_scheduler.OneCycleLR(o, 1e-3, total_steps=n) for o in opts]
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x):
        for o in self.opts: o.zero_grad()
        self.scaler.scale(self.m(x)).backward()
        for o in self.opts:
            self.scaler.step(o)
        self.scaler.update()
        for s in self.scheds:
            s.step()
