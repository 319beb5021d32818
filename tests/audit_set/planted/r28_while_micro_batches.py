# expect: R28
import torch


def train(model, criterion, batches, optimizer, k):
    scaler = torch.amp.GradScaler("cuda")
    it, i = iter(batches), 0
    while True:
        try:
            x, y = next(it)
        except StopIteration:
            break
        with torch.autocast("cuda"):
            loss = criterion(model(x), y) / k
        scaler.scale(loss).backward()
        i += 1
        if i % k:
            scaler.update()
            continue
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
