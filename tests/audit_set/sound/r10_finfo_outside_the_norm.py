import torch
from torch import nn
def attend(scores, mask):
    return scores.masked_fill(mask, torch.finfo(torch.float16).min)
class Clamp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d, eps=1e-5)
    def forward(self, x):
        return self.norm(x) / (x.norm() + torch.finfo(torch.float16).eps)
