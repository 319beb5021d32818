# expect: R11
import torch


def energy(model, x, t):
    with torch.autocast("cuda"):
        logits = model(x)
        return -t * (logits / t).exp().sum(dim=1).log()
