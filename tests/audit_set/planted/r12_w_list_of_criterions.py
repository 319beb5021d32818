# expect: R12
import torch
import torch.nn as nn

def train(net, dl):
    crits = [nn.BCELoss(), nn.L1Loss()]
    for x, y in dl:
        with torch.autocast("cuda"):
            o = net(x)
            loss = sum(c(o, y) for c in crits)
