# expect: none
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    @torch.autocast("cuda")
    def forward(self, x):
        return self.fc(x)

    @torch.autocast("cuda", enabled=False)
    def precise(self, x):
        return self.fc(x.float())
