import torch
from torch import nn

NORMS = {}


def norm(name):
    def deco(cls):
        NORMS[name] = cls
        return cls
    return deco


@norm("rms")
class Rms(nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.g


class Net(nn.Module):
    def __init__(self, norm="rms"):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.n = NORMS[norm](8, eps=1e-5)

    def forward(self, x):
        return self.n(self.fc(x))


net = Net().half().cuda().eval()
