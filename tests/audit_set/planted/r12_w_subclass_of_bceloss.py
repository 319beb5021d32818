# expect: R12
import torch
import torch.nn as nn

class Weighted(nn.BCELoss):
    def forward(self, p, t):
        return super().forward(p, t) * 2
def train(net, x, y):
    crit = Weighted()
    with torch.autocast("cuda"):
        loss = crit(net(x), y)
