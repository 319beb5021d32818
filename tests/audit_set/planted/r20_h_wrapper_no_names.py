# expect: R20
import torch
def to_onnx(net, sample, path, **kw):
    kw.setdefault("opset_version", 17)
    kw.setdefault("dynamo", False)
    torch.onnx.export(net.eval(), sample, path, **kw)
def main(net):
    to_onnx(net, torch.zeros(1, 3, 224, 224), "n.onnx", dynamic_axes={"input": {0: "batch"}})
