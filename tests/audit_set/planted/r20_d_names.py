# expect: R20
import torch

EXPORT = {
    "input_names": ["image"],
    "output_names": ["logits"],
    "dynamic_axes": {"input": {0: "batch"}, "logits": {0: "batch"}},
    "opset_version": 17,
    "dynamo": False,
}


def export(model, x, path):
    torch.onnx.export(model, (x,), path, **EXPORT)
