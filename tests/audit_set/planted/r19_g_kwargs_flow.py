# expect: R19
import torch
def main(net, x, new=True):
    kw = {"opset_version": 17}
    if new:
        kw["dynamo"] = True
    torch.onnx.export(net, (x,), "a.onnx", **kw)
