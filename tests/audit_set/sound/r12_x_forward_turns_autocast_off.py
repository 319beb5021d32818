import torch
import torch.nn.functional as F
from torch import nn


class Matcher(nn.Module):
    def __init__(self, enc):
        super().__init__()
        self.enc = enc
        self.fc = nn.Linear(512, 1)

    def forward(self, left, right, label):
        p = torch.sigmoid(self.fc(self.enc(left) * self.enc(right))).squeeze(1)
        with torch.autocast("cuda", enabled=False):
            return F.binary_cross_entropy(p.float(), label)


def train_epoch(model, loader, optimizer, scaler):
    for left, right, label in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(left, right, label)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
