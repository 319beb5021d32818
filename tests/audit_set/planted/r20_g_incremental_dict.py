# expect: R20
import torch
def export(model, x, path, dynamic=True):
    axes = {}
    if dynamic:
        axes["input"] = {0: "batch"}
        axes["output"] = {0: "batch"}
    torch.onnx.export(model, x, path, input_names=["images"], output_names=["scores"], dynamic_axes=axes)
