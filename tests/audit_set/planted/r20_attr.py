# expect: R20
import torch
def e(m, x):
    dynamic = {"x": {0: "batch"}}
    torch.onnx.export(m, x, "f.onnx", opset_version=18, input_names=["input"], output_names=["output"], dynamic_axes=dynamic)
