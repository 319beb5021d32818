# expect: R26
import torch
from torch import nn

def shrink(module):
    for key, value in module._buffers.items():
        if value is not None:
            module._buffers[key] = value.to(torch.float16)

def block(a, b):
    return [nn.Conv1d(a, b, 5), nn.BatchNorm1d(b), nn.ReLU()]

net = nn.Sequential(*block(1, 16), *block(16, 32))
net.load_state_dict(torch.load("ecg.pt", weights_only=True))
net.eval().apply(shrink)
