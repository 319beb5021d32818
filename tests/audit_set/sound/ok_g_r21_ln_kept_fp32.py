# expect: none
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.l = nn.Linear(8, 8); self.n = nn.LayerNorm(8)
    def forward(self, x): return self.n(self.l(x).float())
net = Net().half()
net.n.float()
torch.onnx.export(net, torch.randn(1, 8).half(), "n.onnx", opset_version=14, dynamo=False)
