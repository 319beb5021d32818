# expect: R01
import torch
import torch.nn as nn
import torch.nn.functional as F

from torch.nn.parallel import DistributedDataParallel as DDP
def main(dl):
    f = DDP(Net().cuda(), device_ids=[0])
    for x, y in dl:
        with torch.amp.autocast("cuda"):
            p = f(x)
        loss = F.cross_entropy(p, y)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
    def forward(self, x):
        return self.l(x)
