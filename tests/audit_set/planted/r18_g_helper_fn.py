# expect: R18
import torch
def assert_finite(t, where=""):
    assert not (torch.isnan(t).any() or torch.isinf(t).any()), where
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        assert_finite(y, "head")
        return y
prog = torch.onnx.export(M(), (torch.randn(1, 3),), dynamo=True)
