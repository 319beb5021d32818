# expect: R20
import torch
from torch import nn
from torch.export import Dim
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.c = nn.Conv2d(3, 8, 3)
    def forward(self, x):
        return self.c(x)
def main():
    net = Net().eval()
    torch.onnx.export(net, (torch.randn(2, 3, 32, 32),), "n.onnx", dynamo=True, input_names=["image"], output_names=["feat"],
                      dynamic_shapes={"image": {0: Dim("batch")}})
