# expect: R20
import torch
def main(net, xs):
    ins = ["image"]
    outs = ["p3", "p4"] + ["p5"]
    axes = {n: {0: "b"} for n in ["image", "p3", "p4", "p6"]}
    torch.onnx.export(net, xs, "n.onnx", input_names=ins, output_names=outs, dynamic_axes=axes)
