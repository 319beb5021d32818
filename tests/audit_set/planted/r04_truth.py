# expect: R04
import torch
def f(scaler, optimizer, scheduler, loss):
    scaler.scale(loss).backward()
    stepped = scaler.step(optimizer) is not None
    scaler.update()
    if stepped:
        scheduler.step()
    optimizer.zero_grad()
