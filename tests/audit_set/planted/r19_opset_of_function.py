# expect: R19
import os
import torch
from models import net

OPSETS = {"cloud": 20, "nano": 11}

def opset_of(target):
    return OPSETS[target]

def convert(model, target, path):
    torch.onnx.export(model, (torch.rand(1, 3, 64, 64),), path, dynamo=True, opset_version=opset_of(target))

convert(net(), os.environ["TARGET"], "m.onnx")
