import torch


def rounding(model):
    worst = 0.0
    for name, p in model.named_parameters():
        rounded = p.detach().half().float()
        worst = max(worst, (rounded - p).abs().max().item())
    return worst
