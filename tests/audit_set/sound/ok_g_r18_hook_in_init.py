import torch
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(3, 3)
        if __debug__:
            self.l.register_forward_hook(self._probe)
    @staticmethod
    def _probe(m, i, o):
        assert torch.isfinite(o).all()
    def forward(self, x):
        return self.l(x)
torch.export.export(M(), (torch.randn(1, 3),))
