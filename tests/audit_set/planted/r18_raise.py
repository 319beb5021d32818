# expect: R18
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4)

    def forward(self, x):
        y, _ = self.attn(x, x, x)
        bad = ~torch.isfinite(y)
        if bad.any():
            raise FloatingPointError("non-finite attention output")
        return y


program = torch.export.export(Encoder(32), (torch.randn(4, 1, 32),))
