# expect: R28
import torch
from torch.amp import GradScaler, autocast
def train(model, loader, optimizer, loss_func, use_amp):
    scaler = GradScaler("cuda", enabled=use_amp)
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        with autocast("cuda", enabled=use_amp):
            output = model(data)
            loss = loss_func(output.view_as(target), target)
        scaler.scale(loss).backward
        scaler.step(optimizer)
        scaler.update()
