# expect: none
import copy

import torch


def compare(model, x):
    half = copy.deepcopy(model).half().eval()
    with torch.no_grad():
        return (half(x.half()).float() - model(x)).abs().max()


def is_rounded(w):
    return bool((w == w.half().float()).all())
