# expect: R12
import torch
from torch import nn


def _focal(gamma=2.0):
    return nn.SoftMarginLoss()


def _plain(weight=None):
    return nn.BCELoss(weight=weight)


BUILDERS = {"focal": _focal, "plain": _plain}


class Config:
    loss = "plain"
    lr = 1e-3


def make_loss(cfg):
    return BUILDERS[cfg.loss]()


def fit(model, loader, optimizer, cfg=Config()):
    criterion = make_loss(cfg)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x).sigmoid(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
