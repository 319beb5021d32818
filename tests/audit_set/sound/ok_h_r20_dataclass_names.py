# expect: none
from dataclasses import dataclass, asdict, field
import torch
@dataclass
class OnnxArgs:
    opset_version: int = 17
    dynamo: bool = False
    input_names: list = field(default_factory=lambda: ["input"])
    output_names: list = field(default_factory=lambda: ["output"])
def export(net, x, path, args=OnnxArgs()):
    torch.onnx.export(net, x, path, dynamic_axes={"input": {0: "batch"}}, **asdict(args))
