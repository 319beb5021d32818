# expect: R11
import torch


def pair_loss(model, x, y):
    with torch.autocast("cuda", dtype=torch.float16):
        a, b = model(x), model(y)
        return (torch.log(torch.exp(a) + torch.exp(b)) - a).mean()
