# expect: R19
import torch
from torch.export import export
def main(net, x):
    ep = export(net, (x,)).run_decompositions()
    torch.onnx.export(ep, opset_version=15).save("a.onnx")
