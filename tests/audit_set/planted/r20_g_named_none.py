# expect: R20
import torch
def main(net, x):
    torch.onnx.export(net, x, "n.onnx", input_names=None, output_names=None, dynamic_axes={"x": {0: "b"}})
