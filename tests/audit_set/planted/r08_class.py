# expect: R08
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return self.fc(x)
class Trainer:
    def __init__(self):
        self.model = Net().half().cuda()
        self.optim = torch.optim.Adam(self.model.parameters(), lr=1e-3)
    def fit(self, loader):
        for x, y in loader:
            self.optim.zero_grad()
            loss = (self.model(x.half()) - y.half()).pow(2).mean()
            loss.backward()
            self.optim.step()
