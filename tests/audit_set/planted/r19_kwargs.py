# expect: R19
import torch

EXPORT = {"opset_version": 17, "dynamo": True, "input_names": ["x"], "output_names": ["y"]}


def export(model, sample, path):
    torch.onnx.export(model, (sample,), path, **EXPORT)
