# expect: R09
import torch, torch.nn as nn
from dataclasses import dataclass
@dataclass
class Config:
    dim: int = 64
    eps: float = 1e-8
class Norm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.eps = config.eps
    def forward(self, x):
        return x / (x.abs().mean(-1, keepdim=True) + self.eps)
class M(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.l = nn.Linear(config.dim, config.dim)
        self.n = Norm(config)
    def forward(self, x):
        return self.n(self.l(x))
def load():
    m = M(Config())
    return m.half().cuda().eval()
