# expect: R21
import torch
from torch import nn


class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(256, 8, batch_first=True)
        self.norm = nn.LayerNorm(256)

    def forward(self, x):
        return self.norm(self.layer(x))


model = Enc().cuda().half().eval()
torch.onnx.export(model, torch.randn(1, 16, 256).cuda().half(), "enc.onnx", opset_version=14, dynamo=False)
