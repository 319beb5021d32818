# expect: R12
import torch
from torch import nn

LOSSES = {"name": "BCELoss"}


def train(model, opt, loader):
    criterion = getattr(nn, "BCELoss")()
    amp = torch.autocast(device_type="cuda", dtype=torch.float16)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with amp:
            loss = criterion(model(x).sigmoid(), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
