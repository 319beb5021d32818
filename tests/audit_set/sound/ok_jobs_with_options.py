from dataclasses import dataclass
import torch
from zoo import create

@dataclass
class Job:
    name: str
    opset: int = 17
    dynamo: bool = False

JOBS = [Job("a"), Job("b", 18, True), Job("c", opset=20, dynamo=True)]

def run(job: Job):
    torch.onnx.export(create(job.name), (torch.randn(1, 3, 64, 64),), job.name, opset_version=job.opset, dynamo=job.dynamo)

for job in JOBS:
    run(job)
