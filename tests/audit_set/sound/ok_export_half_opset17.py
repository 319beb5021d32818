import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)).half().eval()
torch.onnx.export(
    model, torch.randn(1, 8).half(), "m.onnx", opset_version=17, dynamo=False,
    input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
)
