# expect: R18
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, attention, mlp):
        super().__init__()
        self.attention, self.mlp = attention, mlp

    def forward(self, h, mask=None):
        h = h + self.attention(h, mask)
        if torch.isinf(h).any():  # for half precision
            top = torch.finfo(h.dtype).max - 1000
            h = torch.clamp(h, -top, top)
        return h + self.mlp(h)
