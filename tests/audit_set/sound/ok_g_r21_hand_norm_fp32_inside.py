# expect: none
import torch
from torch import nn
class LN2d(nn.Module):
    def forward(self, x):
        dt = x.dtype
        x = x.float()
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        return ((x - u) / torch.sqrt(s + 1e-6)).to(dt)
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.c = nn.Conv2d(3, 8, 3); self.n = LN2d()
    def forward(self, x): return self.n(self.c(x))
net = Net().half()
torch.onnx.export(net, torch.randn(1, 3, 8, 8).half(), "n.onnx", opset_version=17, dynamo=False)
