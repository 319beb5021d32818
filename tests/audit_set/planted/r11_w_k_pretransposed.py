# expect: R11
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

class A(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.q = nn.Linear(c, c); self.k = nn.Linear(c, c); self.v = nn.Linear(c, c)
        self.d = c
    def forward(self, x):
        q = self.q(x)
        k = self.k(x).transpose(1, 2)
        v = self.v(x)
        s = torch.bmm(q, k).div(math.sqrt(self.d))
        return torch.bmm(F.softmax(s, dim=-1), v)
scaler = torch.amp.GradScaler("cuda")
