# expect: R19
from pydantic import BaseModel
import torch
class ExportSettings(BaseModel):
    opset: int = 15
    dynamo: bool = True
class Service:
    def __init__(self, settings: ExportSettings):
        self.s = settings
    def export(self, net, x):
        torch.onnx.export(net, (x,), "s.onnx", opset_version=self.s.opset, dynamo=self.s.dynamo)
def make():
    return Service(ExportSettings())
