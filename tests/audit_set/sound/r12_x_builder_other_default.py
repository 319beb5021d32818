import torch
from torch import nn

KINDS = {
    "bce": lambda **kw: nn.BCELoss(**kw),
    "logits": lambda **kw: nn.BCEWithLogitsLoss(**kw),
}


def build(settings):
    settings = dict(settings)
    return KINDS[settings.pop("name")](**settings)


class Trainer:
    def __init__(self, net, cfg):
        self.net = net
        self.loss = build(cfg.get("loss", {"name": "logits"}))

    def step(self, x, y):
        with torch.autocast("cuda"):
            return self.loss(self.net(x), y)
