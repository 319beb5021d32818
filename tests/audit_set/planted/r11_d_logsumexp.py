# expect: R11
import torch


def info_nce(z, t=0.07):
    sim = z @ z.T / t
    exp_sim = sim.exp()
    denom = exp_sim.sum(1)
    return (torch.log(denom) - sim.diagonal()).mean()
