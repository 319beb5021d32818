# expect: R20
from dataclasses import dataclass, asdict
import torch
@dataclass
class OnnxArgs:
    opset_version: int = 17
    do_constant_folding: bool = True
    dynamo: bool = False
def export(net, x, path, args=OnnxArgs()):
    torch.onnx.export(net, x, path, dynamic_axes={"input": {0: "batch"}}, **asdict(args))
