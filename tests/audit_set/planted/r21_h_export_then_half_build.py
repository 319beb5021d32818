# expect: R21
import subprocess
import torch
import torch.nn as nn
class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.fc = nn.Linear(d, 10)
    def forward(self, x):
        return self.fc(self.norm(x))
def export(path):
    torch.onnx.export(Head(64).eval(), torch.randn(1, 64), path, opset_version=13, dynamo=False)
def build(path):
    cmd = ["trtexec", f"--onnx={path}", "--fp16", "--saveEngine=head.plan"]
    subprocess.run(cmd, check=True)
def main():
    export("head.onnx")
    build("head.onnx")
