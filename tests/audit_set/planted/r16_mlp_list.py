# expect: R16
from torch import nn


def mlp(sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU(), nn.AlphaDropout(0.1)]
    return nn.Sequential(*layers)
