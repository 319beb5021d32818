# expect: none
import torch


def train(model, loader, optimizer, scaler, k):
    for i, batch in enumerate(loader):
        if i % k == 0:
            optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(batch) / k
        scaler.scale(loss).backward()
        if (i + 1) % k == 0:
            scaler.step(optimizer)
            scaler.update()
