import torch
class M(torch.nn.Module):
    def forward(self, a, b):
        assert a.shape == b.shape and a.dim() == a.dim()
        return a + b
torch.export.export(M(), (torch.randn(1, 3), torch.randn(1, 3)))
