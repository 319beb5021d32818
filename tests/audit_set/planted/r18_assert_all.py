# expect: R18
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, x):
        y = self.l(x)
        ok = torch.isfinite(y).all()
        assert ok
        return y


torch.jit.trace(M(), torch.randn(1, 3))
