# expect: R20
import torch
def build_kwargs(dynamic):
    kw = dict(export_params=True, opset_version=17, do_constant_folding=True, dynamo=False)
    if dynamic:
        kw["dynamic_axes"] = {"input": {0: "batch_size"}, "output": {0: "batch_size"}}
    return kw
def main(net, x):
    torch.onnx.export(net, x, "k.onnx", **build_kwargs(True))
