# expect: none
import torch


def export(model, x, path):
    batch = torch.export.Dim("batch")
    torch.onnx.export(model, (x,), path, opset_version=18, dynamo=True, dynamic_shapes=({0: batch},))
