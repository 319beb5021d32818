# expect: none
import torch
TARGETS = {
    "trt8": {"opset_version": 17, "dynamo": False},
    "trt10": {"opset_version": 20, "dynamo": True},
}
def export_for(model, target, x):
    torch.onnx.export(model, (x,), f"{target}.onnx", **TARGETS[target])
