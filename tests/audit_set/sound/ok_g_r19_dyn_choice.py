# expect: none
import torch
def run(net, x, dynamo):
    torch.onnx.export(net, (x,), "a.onnx", opset_version=20 if dynamo else 17, dynamo=dynamo)
