import math, torch
class M(torch.nn.Module):
    def forward(self, x):
        if math.isinf(self.limit):
            return self.l(x)
        return self.l(x).clamp(max=self.limit)
torch.export.export(M(), (torch.randn(1, 3),))
