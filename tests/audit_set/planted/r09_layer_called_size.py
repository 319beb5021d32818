# expect: R09
import torch
from torch import nn

TINY = 1e-8

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        wh = torch.relu(self.size(x))
        return wh[:, :1] / (wh[:, 1:] + torch.full_like(wh[:, 1:], TINY))

def train(head, loader, opt, scaler):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.l1_loss(head(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
