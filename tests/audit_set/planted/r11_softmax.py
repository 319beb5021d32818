# expect: R11
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, scores, v):
        weights = torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True)
        return weights @ v
