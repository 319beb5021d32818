# expect: R20
import torch
class Opts(dict):
    pass
def defaults(opts):
    opts.setdefault("input_names", ["input"])
    opts.setdefault("output_names", ["output"])
    opts.setdefault("dynamic_axes", {"inputs": {0: "batch"}})
    return opts
def main(net, x):
    torch.onnx.export(net, x, "o.onnx", dynamo=False, **defaults({"opset_version": 17}))
