# expect: R18
import math, torch
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        if not math.isfinite(y.sum().item()):
            raise FloatingPointError("x")
        return y
torch.export.export(M(), (torch.randn(1, 3),))
