import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1 = nn.LayerNorm(d, eps=1e-12)
        self.n2 = nn.BatchNorm1d(d, eps=1e-8)
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        return self.n2(self.fc(self.n1(x)))


def run(x):
    with torch.autocast("cuda", dtype=torch.float16):
        return Block(64)(x)
