# expect: R20
import torch
def main(net, xs):
    torch.onnx.export(net, xs, "n.onnx", True, False, torch.onnx.TrainingMode.EVAL, ["image"], ["prob"], dynamic_axes={"input": {0: "b"}})
