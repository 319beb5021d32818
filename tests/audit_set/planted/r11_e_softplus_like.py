# expect: R11
import torch


def loss(logits, y):
    z = torch.sum(torch.exp(logits), dim=1)
    logz = torch.log(z)
    return (logz - logits[torch.arange(len(y)), y]).mean()
