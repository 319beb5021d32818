# expect: none
import torch
class GANTrainer:
    def __init__(self, g, d, opt_g, opt_d):
        self.g, self.d, self.opt_g, self.opt_d = g, d, opt_g, opt_d
        self.scaler = torch.amp.GradScaler("cuda")
    def _zero(self):
        for o in (self.opt_g, self.opt_d):
            o.zero_grad(set_to_none=True)
    def train_step(self, real):
        self._zero()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.d(self.g(real).detach()).mean() - self.d(real).mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt_d)
        self._zero()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = -self.d(self.g(real)).mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt_g)
        self.scaler.update()
