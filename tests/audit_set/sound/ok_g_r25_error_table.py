import torch
def report(model):
    rows = {}
    for n, p in model.named_parameters():
        r = p.detach().half().float()
        rows[n] = ((p - r).abs().max() / p.abs().max()).item()
    return rows
