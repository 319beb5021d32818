# expect: R09
import torch
from torch import nn


class InstanceScale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.fc(x)
        var = h.var(dim=-1, keepdim=True)
        mean = h.mean(dim=-1, keepdim=True)
        return (h - mean) / torch.sqrt(var + 1e-12)


def train(loader, optimizer, scaler, dim):
    model = InstanceScale(dim).cuda()
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
