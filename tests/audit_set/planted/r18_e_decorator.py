# expect: R18
import torch
from torch import nn


class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        y = self.l(x)
        bad = torch.isnan(y) | torch.isinf(y)
        if bad.any():
            print("bad")
        return y
