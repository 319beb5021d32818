# expect: R20
import torch
def export(model, x, path):
    kw = {"input_names": ["image"], "output_names": ["mask"], "opset_version": 17, "dynamo": False}
    kw["dynamic_axes"] = {"images": {0: "n"}, "mask": {0: "n"}}
    torch.onnx.export(model, x, path, **kw)
