import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, debug=False):
        super().__init__()
        self.debug = debug
        self.fc = nn.Linear(4, 4)

    def _check(self, x):
        assert not torch.isnan(x).any()

    def forward(self, x):
        y = self.fc(x)
        if self.debug:
            self._check(y)
        return y
