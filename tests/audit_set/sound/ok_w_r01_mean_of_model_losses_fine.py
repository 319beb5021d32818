# expect: none
import torch
import torch.nn as nn

def train(model, b, scaler):
    model = nn.DataParallel(model)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(b)
    loss = loss.mean()
    scaler.scale(loss).backward()
