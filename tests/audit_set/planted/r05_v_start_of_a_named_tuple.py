# expect: R05
from typing import NamedTuple

import torch


class AmpCfg(NamedTuple):
    enabled: bool = True
    init_scale: float = 1.0
    growth: int = 2000


def make_scaler(amp):
    return torch.amp.GradScaler("cuda", init_scale=amp.init_scale, growth_interval=amp.growth, enabled=amp.enabled)


def train(model, opt, loader, amp=AmpCfg()):
    scaler = make_scaler(amp)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp.enabled):
            loss = torch.nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
