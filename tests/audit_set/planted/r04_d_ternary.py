# expect: R04
import torch


def step(scaler: torch.amp.GradScaler, opt, stats):
    out = scaler.step(opt)
    scaler.update()
    opt.zero_grad()
    stats["skipped"] += 0 if out else 1
