# expect: R19
from dataclasses import dataclass, field
import torch

@dataclass
class Options:
    opset: int = 12
    dynamo: bool = True

@dataclass
class Job:
    net: torch.nn.Module
    options: Options = field(default_factory=Options)

    def write(self, path):
        torch.onnx.export(self.net, (torch.randn(1, 8),), path, opset_version=self.options.opset,
                          dynamo=self.options.dynamo)
