# expect: none
import torch
from torch import nn


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return self.norm(x)


def export(path):
    model = Tiny().eval().half()
    torch.onnx.export(model, torch.randn(1, 16, 64).half(), path, opset_version=17, dynamo=False)
