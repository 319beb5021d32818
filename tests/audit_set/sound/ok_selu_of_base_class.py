import torch
from torch import nn

class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.SELU(), self.dropout(0.1), nn.Linear(dim, 1))

    def dropout(self, p):
        return nn.Dropout(p)

    def forward(self, x):
        return self.net(x)

class SnnMlp(Mlp):
    def dropout(self, p):
        return nn.AlphaDropout(p)

net = SnnMlp(32)
