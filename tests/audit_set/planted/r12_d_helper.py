# expect: R12
import torch
import torch.nn.functional as F


def seg_loss(prob, mask):
    inter = (prob * mask).sum()
    dice = 1 - (2 * inter + 1) / (prob.sum() + mask.sum() + 1)
    return dice + F.binary_cross_entropy(prob, mask)


def evaluate(model, loader):
    total = 0.0
    for x, m in loader:
        with torch.autocast("cuda"):
            prob = torch.sigmoid(model(x))
            total += seg_loss(prob, m).item()
    return total
