# expect: none
import torch
def to_onnx(net, sample, path, **kw):
    kw.setdefault("input_names", ["input"])
    kw.setdefault("output_names", ["output"])
    torch.onnx.export(net.eval(), sample, path, **kw)
def main(net):
    to_onnx(net, torch.zeros(1, 3, 224, 224), "n.onnx", dynamic_axes={"input": {0: "batch"}})
