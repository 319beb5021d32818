# expect: R21
import torch
from polygraphy.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, SaveEngine
from torch import nn
class Tok(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(32)
    def forward(self, x):
        return self.ln(x).sum(-1)
def trt_config():
    return CreateConfig(fp16=True)
def build(path):
    return SaveEngine(EngineFromNetwork(NetworkFromOnnxPath(path), config=trt_config()), "e.plan")()
def main():
    torch.onnx.export(Tok(), torch.zeros(1, 4, 32), "tok.onnx", opset_version=13, dynamo=False)
    build("tok.onnx")
