# expect: R18
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)

    def _check(self, t):
        assert not torch.isnan(t).any(), "nan"
        return t

    def forward(self, x):
        return self._check(self.conv(x))


torch.onnx.export(Net().eval(), torch.randn(1, 3, 64, 64), "net.onnx", opset_version=18, dynamo=True)
