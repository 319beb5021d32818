# expect: R16
import torch.nn as nn
class AMPDropout(nn.AlphaDropout):
    pass
class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(d, d), nn.ReLU(), AMPDropout(0.1), nn.Linear(d, 2))
