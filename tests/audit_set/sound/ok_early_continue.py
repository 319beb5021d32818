import torch


def train(model, criterion, loader, optimizer, scaler):
    for x, y in loader:
        if x.numel() == 0:
            continue
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        if not torch.isfinite(loss):
            print("skip")
            continue
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < 1e-4:
            break
