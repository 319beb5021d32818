# expect: R19
import torch
from functools import partial
export = partial(torch.onnx.export, dynamo=True, opset_version=17)
def main(net, x):
    export(net, (x,), "a.onnx")
