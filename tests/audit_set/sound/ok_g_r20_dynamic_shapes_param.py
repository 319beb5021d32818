# expect: none
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x * 2
def main():
    torch.onnx.export(Net(), (torch.randn(2, 3),), "n.onnx", dynamo=True, input_names=["image"], dynamic_shapes={"x": {0: torch.export.Dim("b")}})
