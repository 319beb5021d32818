# expect: R20
import torch

AXES = {"images": {0: "batch"}, "logits": {0: "batch"}}
INPUTS = ["image"]


def export(model, x):
    torch.onnx.export(
        model, x, "m.onnx", opset_version=18, input_names=INPUTS, output_names=["logits"], dynamic_axes=AXES, dynamo=False
    )
