import torch


def write(net, sample, path, axes=None, **rest):
    rest.setdefault("input_names", ["x"])
    rest.setdefault("output_names", ["y"])
    if axes is None:
        axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    settings = dict(opset_version=18, dynamic_axes=axes, **rest)
    torch.onnx.export(net, sample, path, **settings)


def write_with(net, sample, path, **rest):
    options = dict(dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, **rest)
    torch.onnx.export(net, sample, path, **options)


def of_an_input(net, sample, path):
    torch.onnx.export(net, sample, path, dynamic_axes={"x": {0: "batch"}}, opset_version=18, dynamo=True)
