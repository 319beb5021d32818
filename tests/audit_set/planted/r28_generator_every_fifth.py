# expect: R28
import torch
import torch.nn.functional as F


class Gan:
    def __init__(self, g, d, n_critic=5):
        self.g, self.d = g.cuda(), d.cuda()
        self.opt_g = torch.optim.Adam(self.g.parameters(), 1e-4)
        self.opt_d = torch.optim.Adam(self.d.parameters(), 1e-4)
        self.scaler = torch.amp.GradScaler("cuda")
        self.n_critic = n_critic

    def train(self, loader):
        for step, x in enumerate(loader):
            x = x.cuda()
            z = torch.randn(len(x), 64, device="cuda")
            self.opt_d.zero_grad()
            self.opt_g.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                with torch.no_grad():
                    fake = self.g(z)
                d_loss = F.softplus(self.d(fake)).mean() + F.softplus(-self.d(x)).mean()
            self.scaler.scale(d_loss).backward()
            self.scaler.step(self.opt_d)
            if (step + 1) % self.n_critic == 0:
                with torch.autocast("cuda", dtype=torch.float16):
                    g_loss = F.softplus(-self.d(self.g(z))).mean()
                self.scaler.scale(g_loss).backward()
            self.scaler.step(self.opt_g)
            self.scaler.update()
