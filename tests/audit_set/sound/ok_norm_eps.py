# expect: none
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.bn = nn.BatchNorm1d(dim, eps=1e-5)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return self.fc(self.bn(self.norm(x)))


def run(x):
    with torch.autocast("cuda", dtype=torch.float16):
        return Block(32).cuda()(x)
