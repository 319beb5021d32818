# expect: R20
import torch
from functools import partial
export = partial(torch.onnx.export, opset_version=17, dynamo=False, dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}})
def main(net, x):
    export(net, x, "n.onnx")
