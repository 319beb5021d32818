# expect: R16
import torch.nn as nn
def mlp(dims, amp=True, p=0.1):
    drop = nn.AlphaDropout if amp else nn.Dropout
    layers = []
    for a, b in zip(dims, dims[1:]):
        layers += [nn.Linear(a, b), nn.GELU(), drop(p)]
    return nn.Sequential(*layers)
