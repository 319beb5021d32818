# expect: none
from torch import nn


def snn(dim, classes):
    return nn.Sequential(
        nn.Linear(dim, 256), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(256, 256), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(256, classes)
    )


class SNN(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.act = nn.SELU()
        self.drop = nn.AlphaDropout(0.1)

    def forward(self, x):
        return self.drop(self.act(self.fc(x)))
