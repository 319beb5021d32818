# expect: R12
import torch, torch.nn as nn
CFG = {"loss": "BCELoss"}
def train(net, loader):
    crit = getattr(nn, CFG["loss"])()
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            l = crit(net(x), y)
        l.backward()
