# expect: R06
import argparse

import torch


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--growth-interval", type=int, default=10)
    p.add_argument("--lr", type=float, default=0.1)
    return p.parse_args()


def make_scaler(opts):
    return torch.amp.GradScaler("cuda", growth_interval=opts.growth_interval)


class Runner:
    def __init__(self, net, opts):
        self.net = net
        self.scaler = make_scaler(opts)
        self.opt = torch.optim.SGD(net.parameters(), lr=opts.lr)

    def step(self, x, y):
        self.opt.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
