# expect: R19
import torch

OPSET = 13


def to_onnx(model, size):
    model.eval()
    torch.onnx.export(model, torch.randn(1, 3, size, size), "model.onnx", opset_version=OPSET, input_names=["images"])
