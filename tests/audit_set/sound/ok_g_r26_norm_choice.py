import torch, torch.nn as nn
class B(nn.Module):
    def __init__(self, d, norm="gn"):
        super().__init__()
        self.n = nn.BatchNorm2d(d) if norm == "bn" else nn.GroupNorm(8, d)
m = B(4, norm="gn").half()
