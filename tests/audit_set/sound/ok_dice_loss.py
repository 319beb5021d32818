import torch
from torch import nn


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        p = torch.sigmoid(logits).flatten(1)
        t = target.flatten(1)
        inter = (p * t).sum(1)
        return (1 - (2 * inter + self.smooth) / (p.sum(1) + t.sum(1) + self.smooth)).mean()


def train(unet, loader, opt, scaler):
    dice, bce = DiceLoss(), nn.BCEWithLogitsLoss()
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            z = unet(x)
            loss = bce(z, y) + dice(z, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
