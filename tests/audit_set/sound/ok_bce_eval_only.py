import torch
from torch import nn

bce = nn.BCELoss()


def evaluate(model, loader):
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += bce(torch.sigmoid(model(x)), y).item()
    return total


def train_step(model, x, y, opt, scaler):
    opt.zero_grad()
    with torch.autocast("cuda"):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
