# expect: R09
import torch
import torch.nn as nn

class Match(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.cos = nn.CosineSimilarity(dim=-1, eps=1e-8)
    def forward(self, a, b):
        return self.cos(self.fc(a), self.fc(b))
m = Match().half().cuda()
print(m(torch.randn(2, 4).half().cuda(), torch.randn(2, 4).half().cuda()))
