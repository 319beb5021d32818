# expect: none
import torch


def train(model, loader, optimizer, criterion, amp):
    scaler = torch.amp.GradScaler("cuda", enabled=amp)
    for x, y in loader:
        optimizer.zero_grad()
        if not amp:
            criterion(model(x), y).backward()
            optimizer.step()
            continue
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        if not torch.isfinite(loss):
            continue
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
