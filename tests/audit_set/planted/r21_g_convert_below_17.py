# expect: R21
import onnx, torch
from torch import nn
from onnxconverter_common import float16
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.n = nn.LayerNorm(8); self.l = nn.Linear(8, 2)
    def forward(self, x): return self.l(self.n(x))
torch.onnx.export(Net(), torch.randn(1, 8), "n.onnx", opset_version=14, dynamo=False)
m = float16.convert_float_to_float16(onnx.load("n.onnx"), op_block_list=["Resize"])
onnx.save(m, "n16.onnx")
