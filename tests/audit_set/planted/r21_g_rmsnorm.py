# expect: R21
import torch
from torch import nn
class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__(); self.w = nn.Parameter(torch.ones(d))
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.n = RMSNorm(8); self.l = nn.Linear(8, 2)
    def forward(self, x): return self.l(self.n(x))
def main():
    net = Net().half()
    torch.onnx.export(net, torch.randn(1, 8).half(), "n.onnx", opset_version=17, dynamo=False)
