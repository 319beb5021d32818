# expect: none
import torch

def uni(z, t=2):
    d = torch.pdist(z).pow(2)
    return d.mul(-t).exp().mean().log()
scaler = torch.amp.GradScaler("cuda")
