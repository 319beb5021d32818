# expect: R11
import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        att = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        return torch.softmax(att, dim=-1) @ v


def train(model, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x).mean(1), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
