# expect: R21
import torch
from torch import nn
from transformers import CLIPVisionModel
class Wrap(nn.Module):
    def __init__(self, m):
        super().__init__(); self.m = m
    def forward(self, x): return self.m(x).pooler_output
m = CLIPVisionModel.from_pretrained("openai/clip-vit-base-patch32", torch_dtype=torch.float16).cuda().eval()
torch.onnx.export(Wrap(m), torch.randn(1, 3, 224, 224, dtype=torch.half, device="cuda"), "c.onnx", opset_version=14, dynamo=False)
