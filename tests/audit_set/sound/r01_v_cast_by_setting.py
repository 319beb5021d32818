from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Hyper:
    smoothing: float = 0.1
    loss_in_fp32: bool = False


def loss_fn(logits, target, hp):
    if hp.loss_in_fp32:
        logits = logits.float()
    return nn.functional.cross_entropy(logits, target, label_smoothing=hp.smoothing)


def train(model, loader, hp):
    opt = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", torch.float16):
            logits = model(x)
        loss = loss_fn(logits, y, hp)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


train(nn.Linear(4, 2).cuda(), [], Hyper(loss_in_fp32=True))
