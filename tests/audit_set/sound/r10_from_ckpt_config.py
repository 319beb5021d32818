import torch
from torch import nn
def load(path, build):
    ck = torch.load(path, weights_only=True)
    net = build(**ck["config"])
    net.load_state_dict(ck["model"])
    for m in net.modules():
        if isinstance(m, nn.LayerNorm):
            m.eps = ck["config"]["norm_eps"]
    return net
