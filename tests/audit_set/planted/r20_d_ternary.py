# expect: R20
import torch


def export(model, x, path, dynamic=True):
    axes = {"images": {0: "n"}, "output": {0: "n"}} if dynamic else None
    torch.onnx.export(
        model, (x,), path, input_names=["images"], output_names=["boxes", "scores"], dynamic_axes=axes, dynamo=False
    )
