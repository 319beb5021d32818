# expect: R11
import torch

def f(m, x, y, scaler):
    with torch.autocast("cuda"):
        p = torch.sigmoid(m(x))
        loss = -torch.log1p(-p).mean()
    scaler.scale(loss).backward()
