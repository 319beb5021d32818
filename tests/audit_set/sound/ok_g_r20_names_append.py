# expect: none
import torch
def export(model, x, path, aux):
    outs = ["main"]
    axes = {"x": {0: "b"}, "main": {0: "b"}}
    if aux:
        outs.append("aux")
        axes["aux"] = {0: "b"}
    torch.onnx.export(model, x, path, input_names=["x"], output_names=outs, dynamic_axes=axes, dynamo=False)
