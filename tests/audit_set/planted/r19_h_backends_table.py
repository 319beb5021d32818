# expect: R19
import torch
BACKENDS = [
    ("ts", dict(opset_version=17, dynamo=False)),
    ("dynamo", dict(opset_version=17, dynamo=True)),
]
def all_of_them(net, x):
    for tag, kw in BACKENDS:
        torch.onnx.export(net, (x,), f"{tag}.onnx", **kw)
