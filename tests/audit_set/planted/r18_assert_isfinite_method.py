# expect: R18
import torch
from torch import nn
class N(nn.Module):
    def forward(self, x):
        y = x * 2
        assert y.isfinite().all()
        return y
