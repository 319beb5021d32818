import torch
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        torch._assert_async(torch.isfinite(y).all())
        return y
torch.export.export(M(), (torch.randn(1, 3),))
