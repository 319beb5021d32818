# expect: none
import torch


def train(model, loader, criterion, optimizer, use_amp):
    scaler = torch.amp.GradScaler("cuda") if use_amp else None
    for x, y in loader:
        with torch.autocast("cuda", enabled=use_amp):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
