import torch
class M(torch.nn.Module):
    def forward(self, x, flag: bool = False):
        y = torch.where(torch.isinf(x), torch.zeros_like(x), x)
        bad = torch.isnan(y)
        if flag:
            y = y * 2
        return y.masked_fill(bad, 0)
torch.export.export(M(), (torch.randn(1, 3),))
