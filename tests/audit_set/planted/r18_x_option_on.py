# expect: R18
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.delta = nn.Parameter(torch.zeros_like(base.weight))

    def fold(self, safe: bool = False):
        weight = self.base.weight + self.delta
        if safe:
            if not torch.isfinite(weight).all():
                raise ValueError("not finite")
        return weight

    def forward(self, x):
        return nn.functional.linear(x, self.fold(safe=True))
