# expect: none
import onnx
import torch


def export(model, x, path):
    names_in, names_out = ["images"], ["logits"]
    torch.onnx.export(
        model,
        x,
        path,
        opset_version=17,
        dynamo=False,
        input_names=names_in,
        output_names=names_out,
        dynamic_axes={"images": {0: "batch"}, "logits": {0: "batch"}},
    )
    onnx.checker.check_model(onnx.load(path), full_check=True)
