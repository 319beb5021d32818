# expect: R12
import torch
from torch import nn


class Registry:
    def __init__(self, name):
        self.name = name
        self.table = {}

    def register(self, key=None):
        def deco(obj):
            self.table[key or obj.__name__] = obj
            return obj
        return deco

    def build(self, cfg):
        args = dict(cfg)
        return self.table[args.pop("type")](**args)


LOSSES = Registry("loss")


@LOSSES.register()
class WeightedBCE(nn.Module):
    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = weight
        self.bce = nn.BCELoss()

    def forward(self, p, t):
        return self.weight * self.bce(p, t)


def train(model, loader, cfg):
    loss_fn = LOSSES.build({"type": "WeightedBCE", "weight": 2.0})
    opt = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x).sigmoid(), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
