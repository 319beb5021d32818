# expect: R21
import subprocess, torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.n = nn.LayerNorm(8); self.l = nn.Linear(8, 2)
    def forward(self, x): return self.l(self.n(x))
def main():
    torch.onnx.export(Net().eval(), torch.randn(1, 8), "n.onnx", opset_version=13, dynamo=False, input_names=["x"], output_names=["y"])
    subprocess.run(["trtexec", "--onnx=n.onnx", "--saveEngine=n.plan", "--fp16", "--profilingVerbosity=detailed", "--exportLayerInfo=l.json"], check=True)
