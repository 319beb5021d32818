# expect: R19
import torch
def main(net, x, legacy):
    torch.onnx.export(net, (x,), "a.onnx", dynamo=True, opset_version=11 if legacy else 17)
