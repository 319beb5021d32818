# expect: R21
import torch
import torch.nn as nn


class ChannelNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.g = nn.Parameter(torch.ones(c, 1, 1))

    def forward(self, x):
        mu = x.mean(1, keepdim=True)
        var = (x - mu).pow(2).mean(1, keepdim=True)
        return self.g * (x - mu) / torch.sqrt(var + 1e-5)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 32, 8, 8), ChannelNorm(32), nn.GELU())

    def forward(self, x):
        return self.body(x).mean((2, 3))


class Packager:
    precision = "fp16"

    def cast(self, net, x):
        if self.precision == "fp16":
            return net.half().cuda(), x.half().cuda()
        return net, x

    def export(self, net):
        net, x = self.cast(net.eval(), torch.randn(1, 1, 512, 512))
        torch.onnx.export(net, (x,), "net.onnx", dynamo=False, opset_version=13, input_names=["x"], output_names=["y"])


Packager().export(Net())
