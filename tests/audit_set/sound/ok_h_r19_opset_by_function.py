# expect: none
import torch
def opset_for(dynamo):
    return 18 if dynamo else 16
def export(net, x, path, dynamo):
    torch.onnx.export(net, (x,), path, opset_version=opset_for(dynamo), dynamo=dynamo)
export(torch.nn.Linear(2, 2), torch.zeros(1, 2), "a.onnx", True)
