# expect: R22
import torch
from torch import nn
class A(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q = nn.Linear(d, d)
    def forward(self, x, mask):
        s = self.q(x)
        return s.masked_fill(~mask, -1e30).softmax(-1)
model = A(4).half()
def f(x, m):
    return model(x.half(), m)
