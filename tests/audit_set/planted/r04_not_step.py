# expect: R04
import torch


def train(model, criterion, loader, optimizer, scheduler):
    scaler = torch.amp.GradScaler("cuda")
    skipped = 0
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        if not scaler.step(optimizer):
            skipped += 1
        scaler.update()
    return skipped
