# expect: none
import torch
def main(net, x, names):
    torch.onnx.export(net, x, "n.onnx", input_names=list(names), output_names=["y"], dynamic_axes={"image": {0: "b"}}, dynamo=False)
