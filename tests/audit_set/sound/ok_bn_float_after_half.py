import torch
from torch import nn


def network_to_half(net):
    net = net.half()
    for m in net.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            m.float()
    return net
