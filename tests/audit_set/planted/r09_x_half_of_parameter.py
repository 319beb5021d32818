# expect: R09
import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self, c, eps=1e-10):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(c))

    def forward(self, x):
        return self.scale * x / (x.pow(2).mean(1, keepdim=True) + self.eps).sqrt()


class Tagger(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.proj = nn.Linear(c, c)
        self.white = Whiten(c)

    def forward(self, x):
        return self.white(self.proj(x))


class HalfServer:
    def __init__(self, model):
        self.model = model.cuda().half().eval()

    def predict(self, x):
        return self.model(x.cuda().half()).float()
