# expect: R11
import torch
def bce(logits, t):
    prob = logits.sigmoid()
    return -(t * prob.log() + (1 - t) * (1 - prob).log()).mean()
