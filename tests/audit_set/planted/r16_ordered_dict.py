# expect: R16
from collections import OrderedDict

from torch import nn


def head(dim, classes):
    return nn.Sequential(
        OrderedDict(
            [
                ("fc1", nn.Linear(dim, dim)),
                ("act", nn.GELU()),
                ("drop", nn.AlphaDropout(p=0.2)),
                ("fc2", nn.Linear(dim, classes)),
            ]
        )
    )
