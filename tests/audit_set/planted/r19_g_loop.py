# expect: R19
import torch
def main(net, x):
    for opset in (13, 15, 17):
        torch.onnx.export(net, (x,), f"a{opset}.onnx", opset_version=opset, dynamo=True)
