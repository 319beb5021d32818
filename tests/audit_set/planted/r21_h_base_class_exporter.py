# expect: R21
import torch
from torch import nn
class ExporterBase:
    opset = 13
    def get_model(self):
        raise NotImplementedError
    def export(self, path):
        m = self.get_model().cuda().half().eval()
        torch.onnx.export(m, self.sample(), path, opset_version=self.opset, dynamo=False)
class TextExporter(ExporterBase):
    def get_model(self):
        return nn.Sequential(nn.Embedding(1000, 64), nn.LayerNorm(64), nn.Linear(64, 2))
    def sample(self):
        return torch.zeros(1, 8, dtype=torch.long, device="cuda")
if __name__ == "__main__":
    TextExporter().export("t.onnx")
