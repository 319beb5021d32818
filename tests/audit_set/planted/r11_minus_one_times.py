# expect: R11
import torch


def modulator(x, y, gamma):
    return torch.exp(-gamma * y * x - gamma * torch.log(1 + torch.exp(-1.0 * x)))
