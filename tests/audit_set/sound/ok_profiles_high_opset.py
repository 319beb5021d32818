import sys
import torch
from models import net

PROFILES = {"jetson": {"opset": 18, "trt": 8}, "server": {"opset": 20, "trt": 10}}

def convert(model, profile, out):
    torch.onnx.export(model, (torch.rand(1, 3, 64, 64),), out, opset_version=profile["opset"], dynamo=True)

def main(name):
    convert(net(), PROFILES[name], "m.onnx")
main(sys.argv[1])
