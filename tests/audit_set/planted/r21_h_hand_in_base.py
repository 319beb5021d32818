# expect: R21
import torch
from torch import nn
class NormBase(nn.Module):
    def normalise(self, x):
        mean = torch.mean(x, dim=-1, keepdim=True)
        diff = x - mean
        var = torch.mean(diff * diff, dim=-1, keepdim=True)
        return diff / torch.sqrt(var + self.eps)
class ScaleNorm(NormBase):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(d))
    def forward(self, x):
        return self.normalise(x) * self.g
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 16)
        self.n = ScaleNorm(16)
    def forward(self, x):
        return self.n(self.a(x))
def export(path):
    net = Net().eval().half().cuda()
    torch.onnx.export(net, torch.zeros(1, 16).half().cuda(), path, opset_version=13, dynamo=False)
