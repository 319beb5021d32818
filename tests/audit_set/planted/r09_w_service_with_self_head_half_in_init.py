# expect: R09
import torch
import torch.nn as nn

class Projection(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        x = self.fc(x)
        n = x.pow(2).sum(-1, keepdim=True).sqrt()
        return x / (n + 1e-8)
class Service:
    def __init__(self, w):
        self.head = Projection()
        self.head.load_state_dict(torch.load(w, weights_only=True))
        self.head.eval().to("cuda").half()
    def encode(self, feats):
        return self.head(feats.half())
