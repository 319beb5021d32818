# expect: R28
import torch
class T:
    def __init__(self, m, opts, n):
        self.m, self.opts = m, opts
        self.scheds = {k: torch.optim.lr_scheduler.OneCycleLR(o, 1e-3, total_steps=n) for k, o in opts.items()}
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x):
        for o in self.opts.values(): o.zero_grad()
        self.scaler.scale(self.m(x)).backward()
        for o in self.opts.values():
            self.scaler.step(o)
        self.scaler.update()
        self.tick()
    def tick(self):
        for s in self.scheds.values():
            s.step()
