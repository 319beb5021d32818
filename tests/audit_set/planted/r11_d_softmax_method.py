# expect: R11
import torch
from torch import nn


class Attn(nn.Module):
    def weights(self, scores):
        e = torch.exp(scores)
        return e / e.sum(dim=-1, keepdim=True)

    @torch.autocast("cuda", dtype=torch.float16)
    def forward(self, q, k, v):
        return self.weights(q @ k.transpose(-2, -1)) @ v
