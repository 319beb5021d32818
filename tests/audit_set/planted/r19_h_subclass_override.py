# expect: R19
import torch
class BaseExporter:
    opset = 18
    def export(self, net, path):
        torch.onnx.export(net, (torch.zeros(1, 3, 64, 64),), path, opset_version=self.opset, dynamo=True)
class JetsonExporter(BaseExporter):
    opset = 17
if __name__ == "__main__":
    JetsonExporter().export(torch.nn.Conv2d(3, 8, 3), "j.onnx")
