import torch
from torch import nn
from net import Net
model = Net()
for m in model.modules():
    if isinstance(m, nn.BatchNorm2d):
        m.eps, m.momentum = 1e-3, 0.01
opt = torch.optim.SGD(model.parameters(), 0.1)
