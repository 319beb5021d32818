# expect: R25
import torch
from torch import nn

LOADERS = {}


def loader(kind):
    def deco(fn):
        LOADERS[kind] = fn
        return fn
    return deco


@loader("serving")
def serving(net, path):
    net.load_state_dict(torch.load(path, weights_only=True))
    return net.half()


@loader("training")
def training(net, path):
    net.load_state_dict(torch.load(path, weights_only=True))
    return net


def start_qat(net, path, source="serving"):
    net = LOADERS[source](net, path).float()
    net.train()
    net.qconfig = torch.ao.quantization.get_default_qat_qconfig("x86")
    return torch.ao.quantization.prepare_qat(net)
