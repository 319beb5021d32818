# expect: R11
import torch
import torch.nn as nn
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=1)
    def forward(self, x, y):
        return -(y * torch.log(self.softmax(x))).sum(1).mean()
