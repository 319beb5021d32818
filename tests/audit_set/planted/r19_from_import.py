# expect: R19
from torch.onnx import export


def save(model, x):
    export(model.eval(), (x,), "model.onnx", opset_version=13, dynamo=True)
