# expect: R12
import torch
import torch.nn as nn
import torch.nn.functional as F

from accelerate import Accelerator
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
    def forward(self, x, labels=None):
        p = torch.sigmoid(self.fc(x))
        return F.binary_cross_entropy(p, labels)
acc = Accelerator(mixed_precision="fp16")
net, opt, dl = acc.prepare(Net(), opt, dl)
for x, y in dl:
    acc.backward(net(x, y))
