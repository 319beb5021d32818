# expect: R21
import torch
from torch import nn
def layer_norm(x, w, b, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * w + b
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.w = nn.Parameter(torch.ones(4)); self.b = nn.Parameter(torch.zeros(4))
    def forward(self, x): return layer_norm(x, self.w, self.b)
torch.onnx.export(Net().half(), torch.randn(1, 4).half(), "n.onnx", opset_version=17, dynamo=False)
