# expect: none
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.c = nn.Conv2d(3, 8, 3)
    def forward(self, x): return self.c(x)
def standardise(img):
    return (img - img.mean()) / img.std()
net = Net().half()
x = standardise(torch.rand(1, 3, 32, 32)).half()
torch.onnx.export(net, x, "n.onnx", opset_version=13, dynamo=False)
