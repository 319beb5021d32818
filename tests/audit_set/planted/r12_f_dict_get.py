# expect: R12
import torch
from torch import nn

LOSSES = {"bce": nn.BCELoss, "mse": nn.MSELoss}


def run(model, x, y):
    crit = LOSSES["bce"]()
    with torch.autocast("cuda"):
        return crit(model(x).sigmoid(), y)
