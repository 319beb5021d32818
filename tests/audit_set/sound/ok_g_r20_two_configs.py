# expect: none
import torch
SPECS = {"enc": dict(i=["x"], o=["h"], a={"x": {0: "b"}, "h": {0: "b"}}), "dec": dict(i=["h"], o=["y"], a={"h": {0: "b"}, "y": {0: "b"}})}
def main(nets, xs):
    for k, s in SPECS.items():
        torch.onnx.export(nets[k], xs[k], f"{k}.onnx", input_names=s["i"], output_names=s["o"], dynamic_axes=s["a"], dynamo=False)
