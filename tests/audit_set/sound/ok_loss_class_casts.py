# expect: none
import torch
from torch import nn


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        logits = logits.float()
        ce = nn.functional.cross_entropy(logits, target, reduction="none")
        return ((1 - torch.exp(-ce)) ** self.gamma * ce).mean()


def step(model, x, y, optimizer, scaler):
    loss_fn = FocalLoss()
    with torch.autocast("cuda"):
        out = model(x)
    loss = loss_fn(out, y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
