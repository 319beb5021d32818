# expect: none
import torch, onnx
from functools import partial
export = partial(torch.onnx.export, dynamo=False, opset_version=17)
def main(net, x):
    export(net, (x,), "a.onnx"); onnx.checker.check_model("a.onnx")
