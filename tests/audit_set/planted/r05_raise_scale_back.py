# expect: R05
import torch


def keep_scale_up(scaler):
    if scaler.get_scale() < 16384:
        scaler.update(new_scale=65536.0)


def train(model, criterion, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        keep_scale_up(scaler)
