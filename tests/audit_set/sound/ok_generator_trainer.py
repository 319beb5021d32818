import torch


def iterate(model, criterion, loader, opt, scaler):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        yield loss.item()
