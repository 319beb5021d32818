# expect: R09
import torch
import torch.nn as nn

from dataclasses import dataclass
@dataclass
class Cfg:
    eps: float = 1e-8
class Head(nn.Module):
    def __init__(self, cfg: Cfg):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.eps = cfg.eps
    def forward(self, x):
        h = self.fc(x)
        return h / (h.std(-1, keepdim=True) + self.eps)
def run(x):
    head = Head(Cfg()).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        return head(x)
