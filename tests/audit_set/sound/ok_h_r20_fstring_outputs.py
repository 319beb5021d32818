# expect: none
import torch
def export(net, x):
    outs = [f"p{i}" for i in range(3, 6)]
    axes = {"image": {0: "n"}}
    for i in range(3, 6):
        axes[f"p{i}"] = {0: "n"}
    torch.onnx.export(net, x, "fpn.onnx", input_names=["image"], output_names=outs, dynamic_axes=axes, opset_version=17, dynamo=False)
