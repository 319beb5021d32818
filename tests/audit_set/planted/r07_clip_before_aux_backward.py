# expect: R07
import torch
from torch import nn
import torch.nn.functional as F


def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with torch.autocast("cuda"):
            aux = model.aux(x).mean()
        scaler.scale(aux).backward()
        scaler.step(opt)
        scaler.update()
