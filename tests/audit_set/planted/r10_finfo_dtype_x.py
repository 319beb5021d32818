# expect: R10
import torch
from torch import nn
class RMS(nn.Module):
    def forward(self, x):
        eps = torch.finfo(torch.float16).tiny
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
