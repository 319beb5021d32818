# expect: R20
import torch


def write(net, sample, path, dynamic_axes=None, opset=18):
    net.eval()
    torch.onnx.export(net, (sample,), path, opset_version=opset, dynamic_axes=dynamic_axes)
