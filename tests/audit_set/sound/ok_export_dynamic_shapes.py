import torch

batch = torch.export.Dim("batch", min=1, max=64)


def to_onnx(model, x):
    torch.onnx.export(model.eval(), (x,), "m.onnx", dynamo=True, opset_version=20, dynamic_shapes=({0: batch},), input_names=["x"], output_names=["y"])
