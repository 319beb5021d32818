# expect: R11
import math, torch, torch.nn as nn
class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q = nn.Linear(d, d); self.k = nn.Linear(d, d); self.v = nn.Linear(d, d)
        self.scale = 1 / math.sqrt(d)
    def scores(self, x):
        return torch.matmul(self.q(x), self.k(x).transpose(-2, -1))
    def forward(self, x):
        a = self.scores(x) * self.scale
        return a.softmax(-1) @ self.v(x)
net = Attn(64).half().cuda()
net(torch.randn(1, 4, 64).half().cuda())
