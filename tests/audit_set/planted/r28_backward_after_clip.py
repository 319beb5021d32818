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
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with torch.autocast("cuda"):
            reg = model.penalty(x)
        scaler.scale(reg).backward()
        scaler.step(opt)
        scaler.update()
