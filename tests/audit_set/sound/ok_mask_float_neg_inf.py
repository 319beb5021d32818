import torch


def causal(model, x, n):
    mask = torch.full((n, n), float("-inf")).triu(1)
    big = torch.zeros(n).masked_fill(torch.arange(n) > 3, -1e9)
    with torch.autocast("cuda"):
        return model(x, mask=mask), big
