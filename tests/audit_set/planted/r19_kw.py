# expect: R19
import torch
torch.onnx.export(torch.nn.Linear(2, 2), (torch.randn(1, 2),), "m.onnx", dynamo=True, opset_version=11)
