# expect: R01
import torch, torch.nn as nn, torch.nn.functional as F
from dataclasses import dataclass
@dataclass
class Out:
    logits: torch.Tensor
    hidden: torch.Tensor
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
    def forward(self, x):
        h = self.a(x)
        return Out(logits=h, hidden=h)
def step(x, y, sc, opt):
    net = Net().cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        out = net(x)
    loss = F.cross_entropy(out.logits, y)
    sc.scale(loss).backward(); sc.step(opt); sc.update(); opt.zero_grad()
