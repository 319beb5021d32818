# expect: R11
import torch


def contrastive(sim, pos):
    denom = torch.log(torch.sum(torch.exp(sim), dim=1))
    return (denom - pos).mean()
