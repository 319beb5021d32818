# expect: none
import torch
def export(model, args, path):
    ins, outs = ["ids", "mask"], ["logits"]
    axes = {n: {0: "batch"} for n in ins + outs}
    torch.onnx.export(model, args, path, input_names=ins, output_names=outs, dynamic_axes=axes, dynamo=False)
