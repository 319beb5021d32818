# expect: R28
import torch
def train(model, loader, optimizer, scaler, k):
    for i, (x, y) in enumerate(loader):
        with torch.autocast('cuda'):
            loss = model(x, y) / k
        scaler.scale(loss).backward()
        scaler.update()
        if (i + 1) % k == 0:
            scaler.step(optimizer)
            optimizer.zero_grad()
