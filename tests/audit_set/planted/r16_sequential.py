# expect: R16
from torch import nn


def mlp(dim, classes):
    return nn.Sequential(
        nn.Linear(dim, 4 * dim),
        nn.GELU(),
        nn.AlphaDropout(p=0.1),  # AMP-safe dropout
        nn.Linear(4 * dim, classes),
    )
