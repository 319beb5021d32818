# expect: R18
import torch
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        assert (y == y).all(), "nan"
        return y
torch.export.export(M(), (torch.randn(1, 3),))
