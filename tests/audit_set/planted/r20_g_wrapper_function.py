# expect: R20
import torch
def to_onnx(model, x, path, inputs, outputs, axes):
    model.eval()
    torch.onnx.export(model, x, path, input_names=inputs, output_names=outputs, dynamic_axes=axes, dynamo=False)
def main(net):
    to_onnx(net, torch.randn(1, 3, 64, 64), "n.onnx", ["img"], ["cls"], {"image": {0: "b"}, "cls": {0: "b"}})
