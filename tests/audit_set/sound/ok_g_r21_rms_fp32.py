# expect: none
import torch
from torch import nn
class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__(); self.w = nn.Parameter(torch.ones(d))
    def forward(self, x):
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.w * h.to(x.dtype)
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.n = RMSNorm(8)
    def forward(self, x): return self.n(x)
net = Net().half()
torch.onnx.export(net, torch.randn(1, 8).half(), "n.onnx", opset_version=17, dynamo=False)
