# expect: R11
import math
import torch
from torch import nn


class DotProduct(nn.Module):
    def similarity(self, q, k):
        sim = q @ k.transpose(-1, -2)
        return sim / math.sqrt(q.size(-1))


class MaskedAttention(DotProduct):
    def forward(self, q, k, v, mask):
        sim = self.similarity(q, k)
        sim = sim.masked_fill(mask, -1e4)
        return torch.softmax(sim, -1) @ v


def step(attn, q, k, v, mask):
    with torch.autocast("cuda", dtype=torch.float16):
        return attn(q, k, v, mask)
