# expect: R08
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, d, dtype=torch.float16):
        super().__init__()
        self.fc = nn.Linear(d, d, dtype=dtype)
    def forward(self, x):
        return self.fc(x)
def train(loader):
    net = nn.Sequential(*[Block(64) for _ in range(4)]).cuda()
    opt = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        loss = (net(x.half()).float() - y).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
