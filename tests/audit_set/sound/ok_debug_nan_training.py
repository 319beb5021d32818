# expect: none
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, debug=False):
        super().__init__()
        self.debug = debug
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        y = self.fc(x)
        if self.debug and not torch.jit.is_tracing():
            assert torch.isfinite(y).all()
        return y
