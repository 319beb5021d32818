# expect: R16
import torch.nn as nn
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(d, d), nn.SELU())
        self.mlp = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.AlphaDropout(0.1), nn.Linear(d, d))
    def forward(self, x):
        return self.gate(x) * self.mlp(x)
