# expect: R19
import argparse
from dataclasses import dataclass

import torch


@dataclass
class ExportArgs:
    out: str = "model.onnx"
    opset: int = 17
    dynamo: bool = True

    @classmethod
    def from_cli(cls):
        p = argparse.ArgumentParser()
        p.add_argument("--out", default="model.onnx")
        p.add_argument("--opset", type=int, default=17)
        p.add_argument("--dynamo", action="store_true", default=True)
        return cls(**vars(p.parse_args()))


def export(model, sample, args):
    torch.onnx.export(model, (sample,), args.out, opset_version=args.opset, dynamo=args.dynamo)


if __name__ == "__main__":
    args = ExportArgs.from_cli()
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
    export(net, torch.zeros(1, 3, 64, 64), args)
