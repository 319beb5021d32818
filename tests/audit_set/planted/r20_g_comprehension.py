# expect: R20
import torch
INPUTS = ["input_ids", "attention_mask"]
def export(model, args, path):
    names = ["ids", "mask"]
    axes = {n: {0: "batch", 1: "seq"} for n in INPUTS}
    torch.onnx.export(model, args, path, input_names=names, output_names=["logits"], dynamic_axes=axes)
