# expect: R20
import torch
class BaseOnnx:
    input_names = ["input"]
    output_names = ["output"]
    dynamic_axes = {"input": {0: "batch"}, "output": {0: "batch"}}
    def export(self, net, x, path):
        torch.onnx.export(net, x, path, input_names=self.input_names, output_names=self.output_names,
                          dynamic_axes=self.dynamic_axes, opset_version=17, dynamo=False)
class DepthOnnx(BaseOnnx):
    output_names = ["depth"]
def main(net, x):
    DepthOnnx().export(net, x, "d.onnx")
