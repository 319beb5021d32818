# expect: R26
import torch
from torch import nn

MODELS = {}


def model(name):
    def inner(f):
        MODELS[name] = f
        return f
    return inner


@model("tiny")
def tiny(classes=10):
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes))


@model("wide")
def wide(classes=10):
    return nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def serve(name, ckpt):
    net = MODELS[name](classes=4)
    net.load_state_dict(torch.load(ckpt, weights_only=True))
    net.cuda().half().eval()
    return lambda x: net(x.half()).float()
