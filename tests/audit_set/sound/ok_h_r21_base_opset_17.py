# expect: none
import torch
from torch import nn
class Exporter:
    opset = None
    def __init__(self, net):
        self.net = net.half().cuda().eval()
    def export(self, x, path):
        torch.onnx.export(self.net, x, path, opset_version=self.opset, dynamo=False)
class FormerExporter(Exporter):
    opset = 17
class ConvExporter(Exporter):
    opset = 13
def main(x):
    FormerExporter(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))).export(x, "a.onnx")
    ConvExporter(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())).export(x, "b.onnx")
