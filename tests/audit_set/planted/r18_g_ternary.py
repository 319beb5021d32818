# expect: R18
import torch
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        return torch.zeros_like(y) if torch.isnan(y).any() else y
torch.export.export(M(), (torch.randn(1, 3),))
