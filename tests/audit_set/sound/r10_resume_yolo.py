import argparse, torch
from torch import nn
from net import Net
def main(args):
    model = Net().cuda()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eps = 1e-3
            m.momentum = 0.03
    if args.resume:
        model.load_state_dict(torch.load(args.resume, weights_only=True)["model"])
