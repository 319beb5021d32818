# expect: none
import torch
class Loop:
    def __init__(self, g, d):
        self.opts = {"g": torch.optim.Adam(g.parameters()), "d": torch.optim.Adam(d.parameters())}
        self.g, self.d = g, d
        self.scaler = torch.amp.GradScaler("cuda")
    def train_step(self, a):
        for o in self.opts.values():
            o.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_g = -self.d(self.g(a)).mean()
        self.scaler.scale(loss_g).backward()
        self.scaler.step(self.opts["g"])
        self.opts["d"].zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_d = self.d(a).mean()
        self.scaler.scale(loss_d).backward()
        self.scaler.step(self.opts["d"])
        self.scaler.update()
