# expect: none
import torch


def entropy(p):
    p = p.clamp(1e-4, 1 - 1e-4)
    return -(p * torch.log(p) + (1 - p) * torch.log(1 - p)).mean()
