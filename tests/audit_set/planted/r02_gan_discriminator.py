# expect: R02
import torch
import torch.nn.functional as F


def train_gan(G, D, loader, opt_g, opt_d, z_dim):
    scaler = torch.amp.GradScaler("cuda")
    for real in loader:
        real = real.cuda()
        z = torch.randn(real.size(0), z_dim, device="cuda")

        opt_d.zero_grad()
        with torch.autocast("cuda"):
            fake = G(z)
            d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
        d_loss.backward()
        scaler.step(opt_d)

        opt_g.zero_grad()
        with torch.autocast("cuda"):
            g_loss = F.softplus(-D(fake)).mean()
        scaler.scale(g_loss).backward()
        scaler.step(opt_g)
        scaler.update()
