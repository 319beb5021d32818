# expect: R11
import torch


def attend(model, x, v):
    with torch.autocast("cuda", dtype=torch.float16):
        s = model(x)
    s = s.float()
    e = torch.exp(s)
    return (e / e.sum(-1, keepdim=True)) @ v.float()
