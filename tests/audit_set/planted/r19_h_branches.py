# expect: R19
import torch
def main(net, x, jetson):
    if jetson:
        opset = 17
        dynamo = True
    else:
        opset = 17
        dynamo = False
    torch.onnx.export(net, (x,), "o.onnx", opset_version=opset, dynamo=dynamo)
