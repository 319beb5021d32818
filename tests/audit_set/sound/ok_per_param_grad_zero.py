import torch


def train(model, criterion, loader, opt, scaler):
    for x, y in loader:
        for p in model.parameters():
            p.grad = None
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
