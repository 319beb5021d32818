# expect: none
import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(0.1), nn.Linear(dim, 2))

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def predict(x):
    return MLP(16).half().cuda().eval()(x.half())
