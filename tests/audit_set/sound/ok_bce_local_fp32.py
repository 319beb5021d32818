# expect: none
import torch
from torch import nn

bce = nn.BCELoss()


def step(model, x, y, opt, scaler):
    opt.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        p = torch.sigmoid(model(x))
        with torch.autocast("cuda", enabled=False):
            loss = bce(p.float(), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
