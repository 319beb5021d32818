# expect: R11
import torch

def mine(t, tm):
    return t.mean() - torch.log(torch.exp(tm).mean())
def f(net, x, scaler):
    with torch.autocast("cuda"):
        loss = -mine(net(x), net(x.flip(0)))
    scaler.scale(loss).backward()
