# expect: R28
import torch
from torch import nn
import torch.nn.functional as F


def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        scaler.unscale_(opt)
        gn = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        print(gn)
