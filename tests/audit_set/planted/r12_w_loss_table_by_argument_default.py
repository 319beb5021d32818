# expect: R12
import torch
import torch.nn as nn

import argparse
LOSS = {"bce": nn.BCELoss, "l1": nn.L1Loss}
def main():
    p = argparse.ArgumentParser(); p.add_argument("--loss", default="bce"); a = p.parse_args()
    crit = LOSS[a.loss]()
    with torch.autocast("cuda"):
        crit(net(x), y)
