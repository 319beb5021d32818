# expect: none
import torch
def choose(target):
    if target == "jetson":
        return 17, False
    return 20, True
def main(net, x, target):
    opset, dynamo = choose(target)
    torch.onnx.export(net, (x,), "o.onnx", opset_version=opset, dynamo=dynamo)
