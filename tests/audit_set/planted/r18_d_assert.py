# expect: R18
import torch
from torch import nn


class Block(nn.Module):
    def _check(self, t, name):
        assert not torch.isnan(t).any(), name

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        h = self.fc(x)
        self._check(h, "fc")
        return h


torch.onnx.export(Block(), (torch.randn(1, 8),), "b.onnx")
