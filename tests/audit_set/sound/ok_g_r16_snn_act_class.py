import torch.nn as nn
def snn(dims, act=nn.SELU):
    layers = []
    for a, b in zip(dims, dims[1:]):
        layers += [nn.Linear(a, b), act(), nn.AlphaDropout(0.05)]
    return nn.Sequential(*layers)
