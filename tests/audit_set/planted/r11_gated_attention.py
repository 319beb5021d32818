# expect: R11
import torch, torch.nn as nn, torch.nn.functional as F
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(8, 1)
        self.head = nn.Linear(8, 2)
    def forward(self, bag):
        s = self.w(bag)
        e = torch.exp(s)
        a = e / e.sum(0, keepdim=True)
        return self.head((a * bag).sum(0))
def train(loader):
    net = Pool().cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        for x, y in loader:
            loss = F.cross_entropy(net(x)[None], y)
