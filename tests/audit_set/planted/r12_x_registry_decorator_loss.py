# expect: R12
import torch
import torch.nn.functional as F
from torch import nn

_LOSSES = {}


def loss_fn(name):
    def add(fn):
        _LOSSES[name] = fn
        return fn
    return add


@loss_fn("soft")
def soft(p, y):
    return F.binary_cross_entropy(p, y)


def train(model, loader, optimizer, scaler, kind="soft"):
    objective = _LOSSES[kind]
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = objective(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
