# expect: R11
import torch
from torch import nn


class Rate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width, width)

    def forward(self, x):
        rate = self.net(x)
        return torch.log(torch.exp(rate) - 1)


def train(rate, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(rate(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
