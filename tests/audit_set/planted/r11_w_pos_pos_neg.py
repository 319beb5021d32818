# expect: R11
import torch

def loss(pos, neg, t):
    p = torch.exp(pos / t)
    n = torch.exp(neg / t).sum(-1)
    return -torch.log(p / (p + n)).mean()
def train(m, x, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        scaler.scale(loss(m(x), m(x), 0.05)).backward()
