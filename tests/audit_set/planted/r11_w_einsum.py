# expect: R11
import torch
import torch.nn as nn

class A(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.scale = c ** -0.5
        self.q = nn.Linear(c, c); self.k = nn.Linear(c, c); self.v = nn.Linear(c, c)
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        sim = torch.einsum("bid,bjd->bij", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        return torch.einsum("bij,bjd->bid", attn, v)
scaler = torch.amp.GradScaler("cuda")
