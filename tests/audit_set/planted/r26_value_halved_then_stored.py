# expect: R26
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel


def net():
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU())


def export(averaged: AveragedModel, path):
    out = {}
    for name, tensor in averaged.module.state_dict().items():
        if tensor.is_floating_point():
            tensor = tensor.half()
        out[name] = tensor.cpu()
    torch.save(out, path)


swa = AveragedModel(net())
export(swa, "swa.pt")
