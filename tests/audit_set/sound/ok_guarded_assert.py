# expect: none
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        if not torch.compiler.is_exporting():
            assert torch.isfinite(y).all(), "non-finite output"
        return y


def export(path):
    return torch.export.export(Net(), (torch.randn(2, 4),))
