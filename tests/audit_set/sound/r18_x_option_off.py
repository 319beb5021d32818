import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base, verify=False):
        super().__init__()
        self.base, self.verify = base, verify
        self.delta = nn.Parameter(torch.zeros_like(base.weight))

    def fold(self, safe: bool = False):
        weight = self.base.weight + self.delta
        if safe and not torch.isfinite(weight).all():
            raise ValueError("not finite")
        if self.verify:
            assert not torch.isnan(weight).any()
        return weight

    def forward(self, x):
        return nn.functional.linear(x, self.fold())


def export(base, path):
    torch.onnx.export(Adapter(base), torch.randn(1, 8), path, dynamo=True)
