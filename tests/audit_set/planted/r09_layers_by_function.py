# expect: R09
import torch
from torch import nn

def norm(c):
    return nn.GroupNorm(8, c, eps=1e-10)

def block(a, b):
    return nn.Sequential(nn.Conv1d(a, b, 5), norm(b), nn.GELU())

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(block(a, b) for a, b in ((1, 16), (16, 32)))

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x

net = Tagger()
net.load_state_dict(torch.load("tagger.pt", weights_only=True))
net = net.to("cuda", torch.float16).eval()
