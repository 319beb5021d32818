# expect: R19
import torch


def export(model, sample, path):
    torch.onnx.export(model, (sample,), path, opset_version=17, dynamo=True, input_names=["x"], output_names=["y"])
