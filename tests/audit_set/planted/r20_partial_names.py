# expect: R20
import torch


def export(model, x):
    torch.onnx.export(model, x, "m.onnx", dynamo=False, opset_version=17, input_names=["image"], dynamic_axes={"image": {0: "b"}, "output": {0: "b"}})
