# expect: R11
import torch
import torch.nn as nn

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(8, 1)
    def forward(self, x, mask):
        a = torch.exp(self.w(x).squeeze(-1)) * mask
        a = a / (torch.sum(a, dim=1, keepdim=True) + 1e-6)
        return (a.unsqueeze(-1) * x).sum(1)
def train(x, mask, scaler):
    with torch.autocast("cuda"):
        scaler.scale(Pool()(x, mask).mean()).backward()
