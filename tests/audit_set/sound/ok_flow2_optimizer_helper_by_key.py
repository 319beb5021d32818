import torch
from torch import nn


class Trainer:
    def __init__(self, nets):
        self.opts = {k: torch.optim.Adam(n.parameters()) for k, n in nets.items()}
        self.nets = nets
        self.scaler = torch.amp.GradScaler("cuda")
    def _one(self, opt, net):
        self.scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        self.scaler.step(opt)
    def step(self, loss):
        for o in self.opts.values(): o.zero_grad()
        self.scaler.scale(loss).backward()
        for k in self.opts:
            self._one(self.opts[k], self.nets[k])
        self.scaler.update()
