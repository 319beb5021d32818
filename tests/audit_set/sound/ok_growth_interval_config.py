# expect: none
import torch


def build(cfg):
    return torch.amp.GradScaler("cuda", growth_interval=cfg.amp.growth_interval, enabled=cfg.amp.enabled)
