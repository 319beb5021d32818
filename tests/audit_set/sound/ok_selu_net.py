from torch import nn


class SNN(nn.Module):
    def __init__(self, d, c):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 256), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(256, 256), nn.SELU(inplace=True), nn.AlphaDropout(0.05), nn.Linear(256, c))

    def forward(self, x):
        return self.net(x)
