# expect: R10
import torch
from torch import nn
def swap(parent, ckpt):
    parent.load_state_dict(torch.load(ckpt, weights_only=True))
    for name, child in parent.named_children():
        if isinstance(child, nn.LayerNorm):
            new = nn.LayerNorm(child.normalized_shape, eps=1e-3)
            new.load_state_dict(child.state_dict())
            setattr(parent, name, new)
