# expect: R06
from dataclasses import dataclass

import torch
from torch.amp import GradScaler, autocast


@dataclass
class AmpOptions:
    interval: int = 4
    init_scale: float = 65536.0


class Engine:
    def __init__(self, net, optimizer, options):
        self.net, self.optimizer = net, optimizer
        self.options = options
        self.scaler = GradScaler("cuda", init_scale=self.options.init_scale, growth_interval=self.options.interval)

    def step(self, x, y):
        self.optimizer.zero_grad()
        with autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()


def main(loader):
    net = torch.nn.Linear(8, 1).cuda()
    engine = Engine(net, torch.optim.SGD(net.parameters(), lr=0.1), AmpOptions())
    for x, y in loader:
        engine.step(x.cuda(), y.cuda())
