# expect: R19
from dataclasses import dataclass
import torch
from zoo import create

@dataclass
class Job:
    name: str
    opset: int = 15
    new_exporter: bool = True

def convert(job: Job):
    torch.onnx.export(create(job.name), (torch.randn(1, 3, 64, 64),), job.name + ".onnx", opset_version=job.opset,
                      dynamo=job.new_exporter)

[convert(j) for j in [Job(n) for n in ("a", "b")]]
