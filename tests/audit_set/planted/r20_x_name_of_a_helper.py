# expect: R20
import torch


def example(with_style):
    values, names = [torch.zeros(1, 40, dtype=torch.long), torch.tensor([40])], ["tokens", "lengths"]
    if with_style:
        values.append(torch.zeros(1, 16))
        names.append("style")
    return tuple(values), names


def write(net, path):
    values, input_names = example(net.styles > 0)
    axes = {"tokens": {0: "batch"}, "lengths": {0: "batch"}, "styles": {0: "batch"}, "wave": {0: "batch"}}
    torch.onnx.export(
        net, values, path, input_names=input_names, output_names=["wave"], dynamic_axes=axes, opset_version=18, dynamo=False
    )
