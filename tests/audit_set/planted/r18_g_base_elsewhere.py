# expect: R18
import torch
from common import SegmentationModel
class M(SegmentationModel):
    def forward(self, x):
        y = self.decode(self.encode(x))
        assert not torch.isnan(y).any(), "NaN in logits"
        return y
def main(m):
    torch.onnx.export(m, (torch.randn(1, 3, 64, 64),), "m.onnx", dynamo=True)
