from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True)
class ExportSpec:
    opset: int = 17
    dynamo: bool = True
    path: str = "net.onnx"


def export(net, x, spec):
    torch.onnx.export(net, (x,), spec.path, opset_version=spec.opset, dynamo=spec.dynamo)


DEFAULT = ExportSpec()
export(torch.nn.Conv2d(3, 4, 3), torch.zeros(1, 3, 8, 8), replace(DEFAULT, opset=18))
