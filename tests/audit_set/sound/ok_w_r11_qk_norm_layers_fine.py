# expect: none
import torch
import torch.nn as nn

class A(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.scale = c ** -0.5
        self.qn, self.kn = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv = nn.Linear(c, 3 * c)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = self.qn(q), self.kn(k)
        return ((q @ k.transpose(-2, -1)) * self.scale).softmax(-1) @ v
scaler = torch.amp.GradScaler("cuda")
