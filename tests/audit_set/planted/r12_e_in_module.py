# expect: R12
import torch
from torch import nn


class DetectionLoss(nn.Module):
    def __init__(self, weight=1.0):
        super().__init__()
        self.obj = nn.BCELoss(reduction="none")
        self.weight = weight

    def forward(self, p, t):
        return self.weight * self.obj(p, t).mean()


def train(model, opt, loader):
    criterion = DetectionLoss()
    scaler = torch.amp.GradScaler("cuda")
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            p = model(x).sigmoid()
            loss = criterion(p, t)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
