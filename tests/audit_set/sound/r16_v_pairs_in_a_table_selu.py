from dataclasses import dataclass

from torch import nn

TABLE = {"snn": (nn.SELU, nn.AlphaDropout), "relu": (nn.ReLU, nn.AlphaDropout), "gelu": (nn.GELU, nn.Dropout)}


@dataclass
class Spec:
    hidden: int = 128
    kind: str = "snn"


class Mlp(nn.Module):
    def __init__(self, spec):
        super().__init__()
        act, drop = TABLE[spec.kind]
        self.net = nn.Sequential(nn.Linear(16, spec.hidden), act(), drop(0.1), nn.Linear(spec.hidden, 1))

    def forward(self, x):
        return self.net(x)


model = Mlp(Spec())
