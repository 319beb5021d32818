# expect: R11
import torch
from torch import nn


def attention_scores(query, key, bias=None):
    s = torch.einsum("bhid,bhjd->bhij", query, key) * query.shape[-1] ** -0.5
    if bias is not None:
        s = s + bias
    return s


class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x):
        query, key, value = self.q(x)[:, None], self.k(x)[:, None], self.v(x)[:, None]
        weights = attention_scores(query, key).softmax(-1)
        return weights @ value


def train(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(x).square().mean()
