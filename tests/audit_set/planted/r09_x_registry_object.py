# expect: R09
import torch
from torch import nn
from mmengine.registry import Registry

MODELS = Registry("models")


@MODELS.register_module()
class MeanPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, tokens):
        w = self.score(tokens).relu()
        return (w * tokens).sum(1) / (w.sum(1) + 1e-12)


def load(cfg, path):
    net = MODELS.build(cfg)
    net.load_state_dict(torch.load(path, weights_only=True))
    return net.half().cuda().eval()


class Service:
    def __init__(self, cfg, path):
        self.net = load(cfg, path)

    def __call__(self, tokens):
        return self.net(tokens.half())
