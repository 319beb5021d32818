# expect: R21
import torch
from torch import nn


class ChannelNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, 1, 1))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        var = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(var + 1e-6)


norm = ChannelNorm(32).half().cuda()
