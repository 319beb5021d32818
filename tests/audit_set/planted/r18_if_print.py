# expect: R18
import torch
from torch import nn
class N(nn.Module):
    def forward(self, x):
        if torch.isnan(x).any() or torch.isinf(x).any():
            raise ValueError("bad")
        return x * 2
def export(m):
    torch.onnx.export(m, torch.randn(1, 3), "a.onnx", opset_version=18, dynamo=True)
