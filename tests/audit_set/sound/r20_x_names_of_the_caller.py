import torch


def write(net, sample, path, input_names=None, output_names=None, dynamic_axes=None, opset=18):
    net.eval()
    torch.onnx.export(
        net,
        (sample,),
        path,
        input_names=input_names,
        output_names=output_names,
        opset_version=opset,
        dynamic_axes=dynamic_axes,
    )
