import copy

import torch


def evaluate(model, loader):
    fast = copy.deepcopy(model).half().eval()
    with torch.inference_mode():
        return sum((fast(x.half()).argmax(1) == y).sum().item() for x, y in loader)


def train(model, loader, criterion, optimizer, scaler, val):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return evaluate(model, val)
