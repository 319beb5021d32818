# expect: R19
import torch
def main(module):
    module.to_onnx("a.onnx", torch.randn(1, 3, 32, 32), dynamo=True, opset_version=17)
