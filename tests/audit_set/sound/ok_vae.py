# expect: none
import torch
import torch.nn.functional as F
def reparameterise(mu, logvar):
    std = torch.exp(0.5 * logvar)
    return mu + std * torch.randn_like(std)
def elbo(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld
def train(model, loader, opt):
    for x in loader:
        opt.zero_grad()
        recon, mu, logvar = model(x)
        elbo(recon, x, mu, logvar).backward()
        opt.step()
