import torch
from torch import nn


class Bins(nn.Module):
    def __init__(self, edges, strict=True):
        super().__init__()
        self.register_buffer("edges", edges)
        self.strict = strict

    def forward(self, logits, y):
        empty = torch.isnan(y)
        if empty.any() and self.strict:
            raise ValueError("a target is NaN")
        place = torch.searchsorted(self.edges, y) - 1
        return -torch.log_softmax(logits, -1).gather(-1, place[..., None]).squeeze(-1)
