# expect: none
import torch
from torch import nn
class LN2d(nn.Module):
    def forward(self, x):
        u = x.mean(1, keepdim=True)
        return (x - u) / torch.sqrt((x - u).pow(2).mean(1, keepdim=True) + 1e-6)
net = nn.Sequential(nn.Conv2d(3, 8, 3), LN2d())
torch.onnx.export(net, torch.randn(1, 3, 8, 8), "n.onnx", opset_version=17, dynamo=False)
