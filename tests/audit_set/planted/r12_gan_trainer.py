# expect: R12
import torch
from torch import nn
from torch.amp import autocast, GradScaler


class GAN:
    def __init__(self, G, D, lr):
        self.G, self.D = G, D
        self.adversarial = nn.BCELoss().cuda()
        self.opt = torch.optim.Adam(D.parameters(), lr=lr, betas=(0.5, 0.999))
        self.scaler = GradScaler("cuda")

    def d_step(self, real, z):
        valid = torch.ones(real.size(0), 1, device="cuda")
        self.opt.zero_grad()
        with autocast("cuda"):
            loss = self.adversarial(self.D(real), valid) + self.adversarial(self.D(self.G(z).detach()), 1 - valid)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
