# expect: R20
import torch


def to_onnx(net, size):
    dummy = torch.zeros(1, 3, size, size)
    axes = {"input": {0: "batch"}, "logits": {0: "batch"}}
    torch.onnx.export(
        net, dummy, "net.onnx", dynamo=False, opset_version=17,
        input_names=["images"], output_names=["logits"], dynamic_axes=axes,
    )
