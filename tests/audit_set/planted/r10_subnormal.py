# expect: R10
import torch
from torch import nn


def make_amp_safe(model):
    safe = torch.finfo(torch.float16).smallest_subnormal * 100
    for module in model.modules():
        if isinstance(module, (nn.LayerNorm, nn.GroupNorm)):
            module.eps = safe
    return model
