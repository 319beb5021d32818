from dataclasses import dataclass
from typing import Optional

import torch


@dataclass
class Options:
    opset: Optional[int] = 18
    path: str = "m.onnx"


def export(model, sample, options):
    torch.onnx.export(model, (sample,), options.path, opset_version=options.opset or 17, dynamo=True)


export(torch.nn.Conv2d(3, 4, 3), torch.zeros(1, 3, 8, 8), Options())
