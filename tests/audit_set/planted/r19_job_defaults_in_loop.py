# expect: R19
from dataclasses import dataclass, field
import torch
from zoo import create

@dataclass
class Job:
    name: str
    flags: dict = field(default_factory=lambda: dict(dynamo=True, opset_version=16))

def convert(job, out):
    net = create(job.name).eval()
    torch.onnx.export(net, (torch.randn(1, 3, 64, 64),), out, input_names=["x"], output_names=["y"], **job.flags)

for job in [Job("a"), Job("b")]:
    convert(job, f"{job.name}.onnx")
