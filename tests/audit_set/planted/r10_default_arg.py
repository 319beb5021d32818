# expect: R10
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, dim, norm_eps=torch.finfo(torch.float16).eps):
        super().__init__()
        self.n1 = nn.LayerNorm(dim, eps=norm_eps)
        self.n2 = nn.LayerNorm(dim, norm_eps)
