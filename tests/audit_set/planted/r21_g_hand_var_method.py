# expect: R21
import torch
from torch import nn
class Norm(nn.Module):
    def forward(self, x):
        mu = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mu) / (var + 1e-5).sqrt()
def main():
    net = nn.Sequential(nn.Linear(4, 4), Norm()).half()
    torch.onnx.export(net, torch.randn(1, 4).half(), "n.onnx", opset_version=18, dynamo=False)
