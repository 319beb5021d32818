# expect: R21
from dataclasses import dataclass
import torch
from torch import nn
@dataclass
class DeployConfig:
    opset: int = 14
    half: bool = True
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
    def forward(self, x):
        return self.body(x)
class Deployer:
    def __init__(self, cfg=DeployConfig()):
        self.cfg = cfg
        self.model = Encoder().eval()
    def prepare(self):
        if self.cfg.half:
            self.model.half()
    def export(self):
        self.prepare()
        x = torch.randn(1, 16, 128).half()
        torch.onnx.export(self.model, x, "enc.onnx", opset_version=self.cfg.opset, dynamo=False)
