# expect: R10
from dataclasses import dataclass

import torch
from torch import nn

SMALLEST = torch.finfo(torch.float16).eps


@dataclass
class Shape:
    width: int = 384
    norm_eps: float = 1e-6


def for_half(shape: Shape) -> Shape:
    shape.norm_eps = max(shape.norm_eps, SMALLEST)
    return shape


def restore(path):
    shape = for_half(Shape())
    net = nn.Sequential(nn.Linear(3, shape.width), nn.LayerNorm(shape.width, shape.norm_eps))
    net.load_state_dict(torch.load(path, weights_only=True))
    return net
