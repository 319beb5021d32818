# expect: none
import torch


def standardise(x: torch.Tensor, eps: float = 1e-5):
    x = x.to(torch.float16)
    return (x - x.mean(1, True)).div(x.std(1, keepdim=True).add(eps)).add(1.0)
