# expect: R24
import os
import subprocess
os.environ.setdefault("TRT_VERSION", "11.0.1")
class EngineJob:
    flags = {"fp16": "--fp16", "best": "--best"}
    def __init__(self, onnx, mode="fp16"):
        self.onnx, self.mode = onnx, mode
    def cmd(self):
        return f"trtexec --onnx={self.onnx} {self.flags[self.mode]} --saveEngine=e.plan"
    def run(self):
        subprocess.run(self.cmd().split(), check=True)
