# expect: R09
from functools import partial

import torch
from torch import nn
import torch.nn.functional as F

NORMS = {"l2": partial(F.normalize, dim=-1, eps=1e-12), "none": nn.Identity()}


class Embedder(nn.Module):
    def __init__(self, norm="l2"):
        super().__init__()
        self.fc = nn.Linear(64, 32)
        self.norm = NORMS[norm]

    def forward(self, x):
        return self.norm(self.fc(x))


def serve(path):
    net = Embedder()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net.cuda().half().eval()
