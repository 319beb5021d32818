# expect: R09
import torch
from torch import nn

HEADS = {}


class CosineHead(nn.Module):
    def __init__(self, dim, tiny=1e-9):
        super().__init__()
        self.w = nn.Linear(dim, dim)
        self.tiny = tiny

    def forward(self, feats):
        z = self.w(feats)
        return z / (z.norm(dim=1, keepdim=True) + self.tiny)


HEADS["cosine"] = CosineHead


def serve(name, dim, batch):
    head = HEADS[name](dim)
    head.eval().half().cuda()
    return head(batch.cuda().half())
