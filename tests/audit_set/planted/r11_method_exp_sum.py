# expect: R11
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.router = nn.Linear(dim, experts)

    def forward(self, x):
        scores = self.router(x).exp()
        return scores / scores.sum(-1, keepdim=True)


@torch.autocast("cuda")
def loss_of(gate, x, y):
    return nn.functional.mse_loss(gate(x), y)
