# expect: R21
import torch
from torch import nn


class LayerNorm2d(nn.Module):
    def __init__(self, c, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c))
        self.bias = nn.Parameter(torch.zeros(c))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


net = nn.Sequential(nn.Conv2d(3, 64, 3), LayerNorm2d(64)).half().cuda()
torch.onnx.export(net, torch.randn(1, 3, 64, 64).half().cuda(), "n.onnx", opset_version=17, dynamo=False)
