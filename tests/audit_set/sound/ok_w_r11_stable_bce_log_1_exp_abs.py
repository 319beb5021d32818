# expect: none
import torch

def f(x, y, scaler):
    with torch.autocast("cuda"):
        loss = (torch.relu(x) - x * y + torch.log(1 + torch.exp(-torch.abs(x)))).mean()
    scaler.scale(loss).backward()
