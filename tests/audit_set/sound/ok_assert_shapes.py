import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        assert x.ndim == 4 and x.shape[1] == 3, "bad shape"
        y = self.c(x)
        if self.training and not torch.compiler.is_exporting():
            assert torch.isfinite(y).all()
        return y


torch.onnx.export(Net().eval(), (torch.randn(1, 3, 8, 8),), "n.onnx", dynamo=True, opset_version=18)
