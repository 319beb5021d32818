# expect: R16
import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        h = F.alpha_dropout(F.relu(self.a(x)), 0.1, self.training)
        return self.b(h)
