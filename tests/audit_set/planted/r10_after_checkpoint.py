# expect: R10
import torch
from torch import nn


def load(model, path):
    model.load_state_dict(torch.load(path, weights_only=True))
    for m in model.modules():
        if isinstance(m, nn.LayerNorm):
            m.eps = 1e-3
    return model.eval()
