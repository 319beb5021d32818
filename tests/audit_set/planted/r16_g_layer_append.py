# expect: R16
import torch.nn as nn
def build(d, n):
    layers = []
    for _ in range(n):
        layers.append(nn.Linear(d, d))
        layers.append(nn.ReLU())
        layers.append(nn.AlphaDropout(p=0.1))
    return nn.Sequential(*layers)
