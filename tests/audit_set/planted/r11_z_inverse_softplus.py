# expect: R11
import torch
from torch import nn


class Rate(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.raw = nn.Parameter(torch.log(torch.exp(start) - 1))

    def forward(self, x):
        return x * nn.functional.softplus(self.raw)


def train(rate, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(rate(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
