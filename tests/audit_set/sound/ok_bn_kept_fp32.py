# expect: none
import torch
from torch import nn
from torchvision.models import resnet18


def convert():
    model = resnet18().half()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.float()
    return model
