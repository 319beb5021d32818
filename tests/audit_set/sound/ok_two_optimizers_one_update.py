import torch
import torch.nn.functional as F
from torch.amp import GradScaler, autocast


def train(G, D, loader, opt_g, opt_d):
    scaler = GradScaler("cuda")
    for real in loader:
        real = real.cuda()
        z = torch.randn(real.shape[0], 128, device="cuda")
        with autocast("cuda"):
            fake = G(z)
            d_loss = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake.detach())).mean()
        opt_d.zero_grad(set_to_none=True)
        scaler.scale(d_loss).backward()
        scaler.step(opt_d)
        with autocast("cuda"):
            g_loss = -D(fake).mean()
        opt_g.zero_grad(set_to_none=True)
        scaler.scale(g_loss).backward()
        scaler.step(opt_g)
        scaler.update()
