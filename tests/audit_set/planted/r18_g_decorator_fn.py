# expect: R18
import functools, torch
def nan_guard(fn):
    @functools.wraps(fn)
    def wrap(self, *a, **k):
        out = fn(self, *a, **k)
        if torch.isnan(out).any():
            raise RuntimeError(type(self).__name__)
        return out
    return wrap
class M(torch.nn.Module):
    @nan_guard
    def forward(self, x):
        return self.l(x)
torch.export.export(M(), (torch.randn(1, 3),))
