import torch


def train(model, criterion, loader, optims, scaler):
    for x, y in loader:
        for o in optims.values():
            o.zero_grad(set_to_none=True)
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        for o in optims.values():
            scaler.unscale_(o)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for o in optims.values():
            scaler.step(o)
        scaler.update()
