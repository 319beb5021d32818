# expect: R19
from dataclasses import dataclass
import sys
import torch
from models import net

@dataclass(frozen=True)
class Target:
    opset: int
    side: int

TARGETS = {"cloud": Target(20, 640), "nano": Target(opset=13, side=320)}

class Exporter:
    def __init__(self, target):
        self.target = target

    def run(self, model, path):
        torch.onnx.export(model, (torch.rand(1, 3, self.target.side, self.target.side),), path, dynamo=True,
                          opset_version=self.target.opset)

Exporter(TARGETS[sys.argv[1]]).run(net(), "m.onnx")
