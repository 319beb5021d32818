# expect: R27
import torch


def evaluate(model, loader):
    torch.autocast("cuda", dtype=torch.float16)
    return [model(x) for x in loader]
