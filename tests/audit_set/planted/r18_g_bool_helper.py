# expect: R18
import torch
class M(torch.nn.Module):
    @staticmethod
    def _finite(t):
        return bool(torch.isfinite(t).all())
    def forward(self, x):
        y = self.l(x)
        if not self._finite(y):
            raise FloatingPointError("bad")
        return y
torch.export.export(M(), (torch.randn(1, 3),))
