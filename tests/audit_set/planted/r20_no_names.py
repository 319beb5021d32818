# expect: R20
import torch


def export(model):
    torch.onnx.export(
        model, torch.randn(1, 3, 224, 224), "m.onnx", opset_version=18, dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}
    )
