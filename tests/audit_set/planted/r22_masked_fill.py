# expect: R22
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        q = self.q(x) * 0.125
        scores = q @ self.k(x).transpose(-2, -1)
        scores = scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(-1)


def train(loader):
    model = Attention(64).cuda()
    for x, mask in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(x, mask)
        yield out
