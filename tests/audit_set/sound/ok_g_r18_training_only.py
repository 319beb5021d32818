import torch
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        if self.training:
            assert not torch.isnan(y).any()
        return y
torch.export.export(M().eval(), (torch.randn(1, 3),))
