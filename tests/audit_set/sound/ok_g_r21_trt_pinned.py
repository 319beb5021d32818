# expect: none
import subprocess, torch
from torch import nn
# TensorRT 10.3
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.n = nn.LayerNorm(8)
    def forward(self, x): return self.n(x)
torch.onnx.export(Net(), torch.randn(1, 8), "n.onnx", opset_version=13, dynamo=False)
subprocess.run(["trtexec", "--onnx=n.onnx", "--fp16", "--precisionConstraints=obey", "--layerPrecisions=/n/*:fp32", "--profilingVerbosity=detailed", "--exportLayerInfo=l.json"])
