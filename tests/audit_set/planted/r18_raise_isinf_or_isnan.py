# expect: R18
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        out = self.fc(x)
        if torch.isinf(out).any() or torch.isnan(out).any():
            raise FloatingPointError("non-finite output")
        return out


program = torch.export.export(Head(8), (torch.randn(2, 8),))
