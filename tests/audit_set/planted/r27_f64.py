# expect: R27
import torch


def f(model, x):
    with torch.autocast("cpu", dtype=torch.double):
        return model(x)
