# expect: R19
import torch
class ExportContext:
    def __init__(self, opset_version: int, use_dynamo: bool = True):
        self.opset_version = opset_version
        self.use_dynamo = use_dynamo
    def as_kwargs(self):
        return {"opset_version": self.opset_version, "dynamo": self.use_dynamo}
def export(net, x, ctx):
    torch.onnx.export(net, (x,), "c.onnx", **ctx.as_kwargs())
def main(net, x):
    export(net, x, ExportContext(16))
