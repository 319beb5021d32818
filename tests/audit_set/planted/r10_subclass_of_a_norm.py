# expect: R10
import torch
from torch import nn
class HalfLN(nn.LayerNorm):
    def __init__(self, d):
        super().__init__(d, eps=torch.finfo(torch.float16).smallest_normal)
