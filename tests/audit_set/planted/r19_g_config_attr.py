# expect: R19
import torch
class CFG:
    opset = 16
    dynamo = True
torch.onnx.export(torch.nn.Linear(2, 2), (torch.randn(1, 2),), "a.onnx", opset_version=CFG.opset, dynamo=CFG.dynamo)
