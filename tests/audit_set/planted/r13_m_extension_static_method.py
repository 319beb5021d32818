# expect: R13
import torch
from ops import _C
class GroupedLinear(torch.nn.Module):
    def __init__(self, g, d):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(g, d, d))
    def forward(self, x, idx):
        return self._run(x, self.weight, idx)
    @staticmethod
    def _run(x, weight, idx):
        return _C.grouped_linear(x.contiguous(), weight.contiguous(), idx)
class Trainer:
    def step(self, batch):
        with torch.amp.autocast("cuda", dtype=torch.bfloat16):
            return self.net(*batch)
