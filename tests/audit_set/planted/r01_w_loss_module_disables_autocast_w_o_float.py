# expect: R01
import torch
import torch.nn as nn
import torch.nn.functional as F

class SafeCE(nn.Module):
    def forward(self, logits, y):
        with torch.autocast("cuda", enabled=False):
            return F.cross_entropy(logits, y, label_smoothing=0.1)
def train(net, x, y):
    crit = SafeCE()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = crit(net(x), y)
