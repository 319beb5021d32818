# expect: R21
import torch
from torch import nn


class Tiny(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return self.fc(self.norm(x))


def export(path):
    model = Tiny(64).eval().half()
    torch.onnx.export(model, torch.randn(1, 16, 64).half(), path, opset_version=13, dynamo=False)
