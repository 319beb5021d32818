# expect: R12
import torch
from torch import nn

LOSSES = {}


def register(table, name):
    def deco(fn):
        table[name] = fn
        return fn
    return deco


@register(LOSSES, "bce")
def bce(cfg):
    return nn.BCELoss(reduction=cfg.get("reduction", "mean"))


@register(LOSSES, "mse")
def mse(cfg):
    return nn.MSELoss()


def train(model, loader, cfg):
    criterion = LOSSES[cfg.get("loss", "bce")](cfg)
    opt = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x).sigmoid(), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
