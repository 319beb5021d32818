# expect: R19
import torch
def _export(net, args, path, **options):
    net.eval()
    torch.onnx.export(net, args, path, **options)
def export_detector(net, path, **options):
    options.setdefault("input_names", ["image"])
    _export(net, (torch.zeros(1, 3, 640, 640),), path, dynamo=True, **options)
def main(net):
    export_detector(net, "det.onnx", opset_version=17)
