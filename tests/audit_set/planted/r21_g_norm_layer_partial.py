# expect: R21
import torch
from functools import partial
from torch import nn
class Block(nn.Module):
    def __init__(self, d, norm_layer=partial(nn.LayerNorm, eps=1e-6)):
        super().__init__(); self.n = norm_layer(d); self.l = nn.Linear(d, d)
    def forward(self, x): return x + self.l(self.n(x))
net = nn.Sequential(*[Block(8) for _ in range(2)]).half()
torch.onnx.export(net, torch.randn(1, 8).half(), "n.onnx", opset_version=14, dynamo=False)
