# expect: R19
import torch


def export(model, sample, path, backend="trt"):
    opset = 17 if backend == "trt" else 20
    torch.onnx.export(model, (sample,), path, opset_version=opset, dynamo=True)


export(torch.nn.Conv2d(3, 4, 3), torch.zeros(1, 3, 8, 8), "m.onnx")
