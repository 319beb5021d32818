import torch
from torch import nn
from torch.nn import functional as F


class Criterion(nn.Module):
    def __init__(self, kind="logits"):
        super().__init__()
        self.fn = {"bce": self._bce, "logits": self._logits}[kind]

    def _bce(self, z, t):
        return F.binary_cross_entropy(torch.sigmoid(z), t)

    def _logits(self, z, t):
        return F.binary_cross_entropy_with_logits(z, t)

    def forward(self, z, t):
        return self.fn(z, t)


def train(net, loader):
    crit = Criterion()
    opt = torch.optim.Adam(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = crit(net(x), t)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
