# expect: R10
import torch
from torch import nn
def raise_eps(m):
    if isinstance(m, (nn.LayerNorm, nn.GroupNorm)):
        m.eps = 1e-3
def load(path, build):
    net = build()
    net.load_state_dict(torch.load(path, weights_only=True))
    net.apply(raise_eps)
    return net.half()
