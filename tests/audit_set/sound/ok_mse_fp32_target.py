# expect: none
import torch
import torch.nn.functional as F


def step(model, x, y, optimizer, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        pred = model(x)
    loss = F.mse_loss(pred, y.float())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
