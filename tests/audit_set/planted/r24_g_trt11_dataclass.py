# expect: R24
from dataclasses import dataclass, field
import shlex, subprocess
@dataclass
class Job:
    onnx: str
    plan: str
    trt: str = "11.0"
    flags: str = "--fp16 --useCudaGraph"
    def command(self):
        return shlex.split(f"/opt/tensorrt/{self.trt}/bin/trtexec --onnx={self.onnx} --saveEngine={self.plan} {self.flags}")
def run(job): subprocess.run(job.command(), check=True)
