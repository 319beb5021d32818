# expect: R11
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return F.softmax(self.fc(x), dim=-1)
def f(x, y, scaler):
    net = Net()
    with torch.autocast("cuda"):
        p = net(x)
        loss = -torch.log(p[torch.arange(4), y]).mean()
    scaler.scale(loss).backward()
