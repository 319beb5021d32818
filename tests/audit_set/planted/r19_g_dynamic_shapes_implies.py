# expect: R19
import torch
from torch.export import Dim
def main(net, x):
    torch.onnx.export(net, (x,), "a.onnx", opset_version=17, dynamic_shapes=({0: Dim("b")},))
