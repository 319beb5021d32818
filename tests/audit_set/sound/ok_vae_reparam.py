import torch
import torch.nn.functional as F


def vae_step(enc, dec, x, opt, scaler):
    opt.zero_grad()
    with torch.autocast("cuda"):
        mu, logvar = enc(x).chunk(2, dim=1)
        logvar = logvar.clamp(-10, 10)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = F.mse_loss(dec(z), x, reduction="sum") + kld
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
