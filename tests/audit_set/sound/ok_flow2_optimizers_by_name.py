import torch
from torch import nn
import torch.nn.functional as F


class Opts:
    def __init__(self, d): self.d = d
    def step_all(self, scaler):
        for name in self.d:
            o = self.d[name]
            scaler.unscale_(o)
            nn.utils.clip_grad_norm_([p for g in o.param_groups for p in g["params"]], 1.0)
            scaler.step(o)
    def zero(self):
        for o in self.d.values(): o.zero_grad()
def train(model, opts: Opts, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opts.zero()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        opts.step_all(scaler)
        scaler.update()
