import torch
from torch import nn


class Stats(nn.Module):
    def forward(self, a, b, c):
        return (a - b) / (c.std() + 1e-8)


class Net(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x)


def run(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return model(x)
