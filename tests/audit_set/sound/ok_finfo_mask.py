# expect: none
import torch


def causal(scores, mask):
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min)


def clamp_inf(hidden):
    if hidden.dtype == torch.float16:
        limit = torch.finfo(torch.float16).max - 1000
        hidden = torch.clamp(hidden, min=-limit, max=limit)
    return hidden
