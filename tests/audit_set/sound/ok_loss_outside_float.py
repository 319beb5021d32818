# expect: none
import torch
import torch.nn.functional as F


def step(model, x, y, optimizer, scaler):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(x)
    loss = F.cross_entropy(logits.float(), y, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
