import sys
import torch
from models import net

PROFILES = {
    "jetson": {"opset": 13, "dynamo": False},
    "server": {"opset": 20, "dynamo": True},
}

def convert(model, profile, out):
    torch.onnx.export(model, (torch.rand(1, 3, 64, 64),), out, opset_version=profile["opset"], dynamo=profile["dynamo"])

def main(name):
    profile = PROFILES[name]
    convert(net(), profile, "m.onnx")
main(sys.argv[1])
