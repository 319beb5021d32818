# expect: R11
import torch

lse = lambda x, d: x.exp().sum(d).log()


def nll(x, y):
    return (lse(x, 1) - x.gather(1, y[:, None])[:, 0]).mean()
