# expect: R11
import torch


def focal(logits, target, gamma=2.0):
    p = logits.sigmoid()
    pos = target * (1 - p) ** gamma * torch.log(p)
    neg = (1 - target) * p**gamma * torch.log(1 - p)
    return -(pos + neg).mean()
