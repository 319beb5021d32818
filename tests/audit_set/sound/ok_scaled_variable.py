import torch


def train(model, criterion, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            total = criterion(model(x), y)
        scaled = scaler.scale(total)
        scaled.backward()
        scaler.step(optimizer)
        scaler.update()
