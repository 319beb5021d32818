# expect: R11
import torch


def focal(logits, y, gamma=2.0):
    p = torch.sigmoid(logits)
    pos = -y * (1 - p) ** gamma * torch.log(p)
    neg = -(1 - y) * p**gamma * torch.log(1 - p)
    return (pos + neg).mean()
