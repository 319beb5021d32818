# expect: R16
import torch
import torch.nn as nn


class FeedForward(nn.Module):
    def __init__(self, dim, p=0.1):
        super().__init__()
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.drop = nn.AlphaDropout(p)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))
