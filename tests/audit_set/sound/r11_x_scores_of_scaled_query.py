import torch
from torch import nn


def attention_scores(query, key):
    query = query * query.shape[-1] ** -0.5
    return torch.einsum("bhid,bhjd->bhij", query, key)


class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x):
        query, key, value = self.q(x)[:, None], self.k(x)[:, None], self.v(x)[:, None]
        return attention_scores(query, key).softmax(-1) @ value


def train(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(x).square().mean()
