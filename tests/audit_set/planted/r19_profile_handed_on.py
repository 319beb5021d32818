# expect: R19
import argparse
import torch
from models import net

TARGETS = {"nano": {"opset": 13, "hw": 320}, "cloud": {"opset": 18, "hw": 640}}

def convert(model, target, path):
    torch.onnx.export(model, (torch.rand(1, 3, target["hw"], target["hw"]),), path, dynamo=True,
                      opset_version=target["opset"])

def main():
    p = argparse.ArgumentParser()
    p.add_argument("--target", required=True)
    a = p.parse_args()
    convert(net(), TARGETS[a.target], "m.onnx")
main()
