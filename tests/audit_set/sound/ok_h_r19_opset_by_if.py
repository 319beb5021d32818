# expect: none
import torch
def export(net, x, path, dynamo=False):
    if dynamo:
        opset = 18
    else:
        opset = 17
    torch.onnx.export(net, (x,), path, opset_version=opset, dynamo=dynamo)
def main(net, x):
    export(net, x, "a.onnx", dynamo=True)
    export(net, x, "b.onnx")
