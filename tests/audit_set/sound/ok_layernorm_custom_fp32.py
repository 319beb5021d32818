# expect: none
import torch
from torch import nn
class LayerNormFP32(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight
def run(x):
    m = nn.Sequential(nn.Linear(4, 4), RMSNorm(4)).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        return m(x)
