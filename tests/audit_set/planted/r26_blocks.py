# expect: R26
import torch
from torch import nn


class ConvBN(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(o)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(ConvBN(3, 32), ConvBN(32, 64))

    def forward(self, x):
        return self.body(x)


def deploy(path):
    net = Net()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net.to(torch.float16).eval()
