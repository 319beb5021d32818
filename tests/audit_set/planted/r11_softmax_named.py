# expect: R11
import torch


def gumbel_weights(logits, temperature):
    e = (logits / temperature).exp()
    return e / e.sum(-1, keepdim=True)
