# expect: R12
import torch
from torch import nn
LOSSES = {"bce": nn.BCELoss(), "l1": nn.L1Loss()}
def f(m, x, y):
    with torch.autocast("cuda"):
        return LOSSES["bce"](m(x).sigmoid(), y)
