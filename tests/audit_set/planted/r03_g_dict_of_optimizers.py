# expect: R03
import torch
class Trainer:
    def __init__(self, g, d):
        self.g, self.d = g, d
        self.opts = {"g": torch.optim.Adam(g.parameters()), "d": torch.optim.Adam(d.parameters())}
        self.scaler = torch.amp.GradScaler("cuda")
    def train_step(self, a):
        self.opts["g"].zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            fake = self.g(a)
            loss_g = -self.d(fake).mean()
        self.scaler.scale(loss_g).backward()
        self.scaler.step(self.opts["g"])
        with torch.autocast("cuda", dtype=torch.float16):
            loss_d = self.d(fake.detach()).mean() - self.d(a).mean()
        self.scaler.scale(loss_d).backward()
        self.scaler.step(self.opts["d"])
        self.scaler.update()
