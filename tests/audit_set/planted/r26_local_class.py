# expect: R26
import torch
from torch import nn


class ConvBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(o, momentum=1e-4)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


net = ConvBlock(3, 16)
net.to(torch.float16)
