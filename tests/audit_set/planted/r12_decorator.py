# expect: R12
import torch
from torch import nn
class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.loss = nn.BCELoss()
    @torch.autocast("cuda")
    def forward(self, x, y):
        return self.loss(torch.sigmoid(self.net(x)), y)
