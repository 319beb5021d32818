# expect: R18
import torch
import torch.nn as nn
class Net(nn.Module):
    def forward(self, x):
        y = self.l(x)
        has_nan = (y != y).any()
        assert not has_nan
        return y
