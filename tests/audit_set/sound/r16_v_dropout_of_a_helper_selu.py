from dataclasses import dataclass

from torch import nn


@dataclass
class BlockSpec:
    width: int = 64
    drop: str = "alpha"
    act: str = "relu"


def make_dropout(spec):
    return nn.AlphaDropout(0.1) if spec.drop == "alpha" else nn.Dropout(0.1)


class Block(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(spec.width, spec.width), nn.ReLU() if spec.act == "relu" else nn.SELU(), make_dropout(spec))

    def forward(self, x):
        return self.body(x)


class Net(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.blocks = nn.ModuleList([Block(spec) for _ in range(3)])

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


net = Net(BlockSpec(act="selu"))
