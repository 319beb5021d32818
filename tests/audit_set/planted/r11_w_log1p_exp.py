# expect: R11
import torch

def f(x, scaler):
    with torch.autocast("cuda"):
        loss = torch.log1p(torch.exp(x)).mean()
    scaler.scale(loss).backward()
