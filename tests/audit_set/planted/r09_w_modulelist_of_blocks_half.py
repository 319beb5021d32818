# expect: R09
import torch
import torch.nn as nn

class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
    def forward(self, x):
        return x * torch.rsqrt(x.mul(x).mean(-1, keepdim=True) + 1e-9) * self.g
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = Norm(4)
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return x + self.fc(self.n(x))
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 4)
        self.blocks = nn.ModuleList([Block() for _ in range(4)])
    def forward(self, ids):
        x = self.emb(ids)
        for blk in self.blocks:
            x = blk(x)
        return x
def load(path):
    m = LM()
    m.load_state_dict(torch.load(path, weights_only=True))
    return m.to("cuda", torch.float16).eval()
def main():
    lm = load("x.pt")
    print(lm(torch.ones(3).long()))
