# expect: none
import torch

def train(model, b, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(**b)
    loss = out[0].mean() + 0.1 * out[1].mean()
    scaler.scale(loss).backward()
