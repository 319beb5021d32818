import torch

EXPORT = dict(opset_version=17, dynamo=False, input_names=["x"], output_names=["y"])


def save(model, x, dynamic):
    if dynamic:
        EXPORT["dynamic_axes"] = {"x": {0: "n"}, "y": {0: "n"}}
    torch.onnx.export(model, (x,), "m.onnx", **EXPORT)
