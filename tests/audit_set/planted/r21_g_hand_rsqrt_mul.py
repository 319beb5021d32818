# expect: R21
import torch
from torch import nn
class Norm(nn.Module):
    def __init__(self, d):
        super().__init__(); self.g = nn.Parameter(torch.ones(d))
    def forward(self, x):
        d = x - x.mean(dim=-1, keepdim=True)
        return d * torch.rsqrt((d * d).mean(dim=-1, keepdim=True) + 1e-5) * self.g
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.n = Norm(8); self.l = nn.Linear(8, 2)
    def forward(self, x): return self.l(self.n(x))
def export(path):
    net = Net()
    net.half()
    torch.onnx.export(net, (torch.randn(1, 8).half(),), path, opset_version=17, dynamo=False)
