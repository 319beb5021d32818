import torch
import torch.nn as nn
def net_to_half(module):
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return
    for p in module.parameters(recurse=False):
        p.data = p.data.half()
    for c in module.children():
        net_to_half(c)
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3)
net_to_half(N())
