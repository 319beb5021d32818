# expect: none
import torch
def to_onnx(model, x, path, inputs, outputs):
    axes = {k: {0: "b"} for k in (*inputs, *outputs)}
    torch.onnx.export(model, x, path, input_names=inputs, output_names=outputs, dynamic_axes=axes, dynamo=False)
def main(a, b, x):
    to_onnx(a, x, "a.onnx", ["image"], ["emb"])
    to_onnx(b, x, "b.onnx", ["emb"], ["logits"])
