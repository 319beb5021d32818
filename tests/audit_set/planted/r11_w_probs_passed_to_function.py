# expect: R11
import torch

def nll(probs, y):
    return -torch.log(probs.gather(1, y[:, None])).mean()
def f(m, x, y, scaler):
    with torch.autocast("cuda"):
        p = torch.softmax(m(x), dim=-1)
        loss = nll(p, y)
    scaler.scale(loss).backward()
