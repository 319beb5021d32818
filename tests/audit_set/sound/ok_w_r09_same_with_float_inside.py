# expect: none
import torch
import torch.nn as nn

class RMS(nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
    def forward(self, x):
        xf = x.float()
        ms = (xf * xf).mean(-1, keepdim=True)
        return (xf / torch.sqrt(ms + self.eps)).type_as(x) * self.weight
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 4)
        self.norm = RMS(4)
    def forward(self, ids):
        return self.norm(self.emb(ids))
model = LM().half().cuda().eval()
print(model(torch.ones(3).long()))
