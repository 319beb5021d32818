# expect: none
import torch

def train(model, b, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        losses = model(b)
    loss = sum(v.mean() for v in losses.values())
    scaler.scale(loss).backward()
