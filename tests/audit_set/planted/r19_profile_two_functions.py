# expect: R19
import sys
import torch
from models import net

PROFILES = {"edge": {"opset": 13}, "rack": {"opset": 19}}

def _write(model, opset, path):
    torch.onnx.export(model, (torch.rand(1, 3, 64, 64),), path, opset_version=opset, dynamo=True)

def export(model, profile, path):
    _write(model, profile["opset"], path)

def main(name):
    export(net(), PROFILES[name], "m.onnx")
main(sys.argv[1])
