import torch

if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
    from torch.amp import GradScaler, autocast
else:
    from torch.cuda.amp import GradScaler, autocast


def step(model, x, y, opt, criterion, scaler: GradScaler):
    opt.zero_grad()
    with autocast("cuda"):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
