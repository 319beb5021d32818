# expect: none
import torch
class Exporter:
    def __init__(self, opset, dynamo=True):
        self.opset = opset
        self.dynamo = dynamo
    def run(self, net, x, path):
        torch.onnx.export(net, (x,), path, opset_version=self.opset, dynamo=self.dynamo)
class DepthExporter(Exporter):
    def __init__(self):
        super().__init__(opset=17, dynamo=False)
class NewExporter(Exporter):
    def __init__(self):
        super().__init__(opset=20)
