# expect: none
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
    def forward(self, x):
        return F.log_softmax(self.a(x), dim=-1)
def main(dl):
    net = Net().cuda()
    for x, y in dl:
        with torch.autocast("cuda"):
            lp = net(x)
        loss = F.nll_loss(lp, y)
