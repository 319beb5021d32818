# expect: R12
import torch
from torch import nn


class LossZoo:
    _zoo = {}

    @classmethod
    def register(cls, name, fn):
        cls._zoo[name] = fn

    @classmethod
    def create(cls, name):
        return cls._zoo[name]()


LossZoo.register("bce", nn.BCELoss)
LossZoo.register("l1", nn.L1Loss)


def train(model, loader):
    crit = LossZoo.create("bce")
    opt = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = crit(model(x).sigmoid(), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
