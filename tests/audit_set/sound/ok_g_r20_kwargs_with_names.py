# expect: none
import torch
def export(model, x, path, static):
    kw = dict(input_names=["image"], output_names=["mask"], dynamo=False)
    if not static:
        kw["dynamic_axes"] = {"image": {0: "n"}, "mask": {0: "n"}}
    torch.onnx.export(model, x, path, **kw)
