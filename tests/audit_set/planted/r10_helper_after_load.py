# expect: R10
import timm
import torch
from torch import nn


def soften(module):
    for child in module.modules():
        if isinstance(child, (nn.LayerNorm, nn.GroupNorm)):
            child.eps = 6.1e-5


def load(path):
    model = timm.create_model("vit_base_patch16_224", pretrained=False)
    model.load_state_dict(torch.load(path, weights_only=True))
    soften(model)
    return model.half().eval()
