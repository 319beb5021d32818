# expect: R18
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        output = self.body(x)
        assert not torch.isnan(output).any(), "NaN in the output"
        return output


def export(path):
    torch.onnx.export(Net(), torch.randn(1, 8), path, dynamo=True)
