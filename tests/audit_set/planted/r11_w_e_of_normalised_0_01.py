# expect: R11
import torch
import torch.nn as nn
import torch.nn.functional as F

class M(nn.Module):
    def __init__(self, T=0.01):
        super().__init__()
        self.T = T
    def forward(self, a, b):
        q = F.normalize(a, dim=1)
        logits = torch.cat([(q * b).sum(1, keepdim=True), q @ b.t()], 1) / self.T
        e = torch.exp(logits)
        return -torch.log(e[:, 0] / e.sum(1)).mean()
def train(x, scaler):
    m = M()
    with torch.autocast("cuda", dtype=torch.float16):
        scaler.scale(m(x, x)).backward()
