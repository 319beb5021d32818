# expect: none
import torch
def export(model, x, path):
    outs, axes = [], {"x": {0: "b"}}
    for i in range(3):
        outs.append(f"level_{i}")
        axes[f"level_{i}"] = {0: "b"}
    torch.onnx.export(model, x, path, input_names=["x"], output_names=outs, dynamic_axes=axes, dynamo=False)
