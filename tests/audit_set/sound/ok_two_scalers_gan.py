import torch
from torch import nn


class Pix2Pix:
    def __init__(self, gen, disc):
        self.gen, self.disc = gen, disc
        self.g_scaler = torch.amp.GradScaler("cuda")
        self.d_scaler = torch.amp.GradScaler("cuda")
        self.bce = nn.BCEWithLogitsLoss()
        self.l1 = nn.L1Loss()
        self.opt_g = torch.optim.Adam(gen.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(disc.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def train(self, loader):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            with torch.autocast("cuda"):
                y_fake = self.gen(x)
                d_real = self.disc(x, y)
                d_fake = self.disc(x, y_fake.detach())
                d_loss = (self.bce(d_real, torch.ones_like(d_real)) + self.bce(d_fake, torch.zeros_like(d_fake))) / 2
            self.disc.zero_grad()
            self.d_scaler.scale(d_loss).backward()
            self.d_scaler.step(self.opt_d)
            self.d_scaler.update()
            with torch.autocast("cuda"):
                d_fake = self.disc(x, y_fake)
                g_loss = self.bce(d_fake, torch.ones_like(d_fake)) + 100 * self.l1(y_fake, y)
            self.opt_g.zero_grad()
            self.g_scaler.scale(g_loss).backward()
            self.g_scaler.step(self.opt_g)
            self.g_scaler.update()
