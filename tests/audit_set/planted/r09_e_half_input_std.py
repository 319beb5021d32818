# expect: R09
import torch


def standardise(x: torch.Tensor, eps: float = 1e-8):
    x = x.to(torch.float16)
    mu = x.mean(dim=1, keepdim=True)
    sd = x.std(dim=1, keepdim=True)
    return (x - mu).div(sd.add(eps))
