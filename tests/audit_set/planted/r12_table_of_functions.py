# expect: R12
import torch, torch.nn.functional as F
def dice(p, t):
    return 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)
def combo(p, t):
    return F.binary_cross_entropy(p, t) + dice(p, t)
LOSSES = {"dice": dice, "combo": combo}
class R:
    def __init__(self, net, cfg):
        self.net = net
        self.crit = LOSSES[cfg["loss"]]
    def fit(self, loader):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.crit(torch.sigmoid(self.net(x)), y)
            loss.backward()
