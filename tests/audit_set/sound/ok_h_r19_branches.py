# expect: none
import torch
def main(net, x, jetson):
    if jetson:
        opset = 17
        dynamo = False
    else:
        opset = 20
        dynamo = True
    torch.onnx.export(net, (x,), "o.onnx", opset_version=opset, dynamo=dynamo)
