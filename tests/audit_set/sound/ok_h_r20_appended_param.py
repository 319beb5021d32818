# expect: none
import torch
def export(net, x, path, output_names, aux=False):
    if aux:
        output_names.append("aux")
    axes = {n: {0: "b"} for n in output_names}
    axes["aux"] = {0: "b"}
    torch.onnx.export(net, x, path, input_names=["x"], output_names=output_names, dynamic_axes=axes, dynamo=False, opset_version=17)
export(torch.nn.Linear(2, 2), torch.zeros(1, 2), "a.onnx", ["y"])
