import torch
class Loss(torch.nn.Module):
    def forward(self, a, b):
        l = (a - b).abs().mean()
        if not torch.isfinite(l):
            raise RuntimeError
        return l
class M(torch.nn.Module):
    def forward(self, x):
        return self.l(x)
crit = Loss()
def train(m, dl):
    for x, y in dl:
        crit(m(x), y).backward()
torch.export.export(M().eval(), (torch.randn(1, 3),))
