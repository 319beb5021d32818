import torch
from ops import _C
class GroupedLinear(torch.nn.Module):
    def __init__(self, g, d):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(g, d, d))
    def forward(self, x, idx):
        w = self.weight.to(x)
        return _C.grouped_linear(x, w, idx)
def step(net, batch):
    with torch.amp.autocast("cuda", dtype=torch.bfloat16):
        return net(*batch)
