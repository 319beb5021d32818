# expect: R10
import torch
from torch import nn
def adapt(net, path):
    net.load_state_dict(torch.load(path, weights_only=True))
    for m in net.modules():
        if isinstance(m, nn.LayerNorm):
            m.eps *= 100
