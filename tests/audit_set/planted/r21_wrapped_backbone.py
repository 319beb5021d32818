# expect: R21
import argparse
import timm
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk

    def forward(self, x):
        return self.trunk(x).float().softmax(-1)

def build(args):
    trunk = timm.create_model(args.arch)
    net = Scores(trunk).eval().cuda()
    return net.half() if args.fp16 else net

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="deit_tiny_patch16_224")
    parser.add_argument("--fp16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--opset", type=int, default=14)
    args = parser.parse_args()
    x = torch.rand(1, 3, 224, 224, device="cuda", dtype=torch.float16)
    torch.onnx.export(build(args), x, "scores.onnx", opset_version=args.opset, dynamo=False)
