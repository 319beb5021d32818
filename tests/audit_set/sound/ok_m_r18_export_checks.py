import torch
import torch.nn as nn
class Net(nn.Module):
    def forward(self, x):
        y = self.l(x)
        torch._check(torch.isfinite(y).all().item())
        torch._assert_async(torch.isfinite(y).all())
        return y
torch.export.export(Net(), (torch.zeros(1, 2),))
