# expect: R09
import torch


@torch.no_grad()
def rms(x):
    x = x.half()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-8)
