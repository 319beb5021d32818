# expect: none
import torch

def f(x, scaler):
    with torch.autocast("cuda"):
        loss = torch.where(x > 20, x, torch.log(1 + torch.exp(x))).mean()
    scaler.scale(loss).backward()
