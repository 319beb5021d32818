import torch


def train(model, criterion, loader, optimizer, scaler, log):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        log(torch.stack([p.detach().norm() for p in model.parameters()]).norm())
