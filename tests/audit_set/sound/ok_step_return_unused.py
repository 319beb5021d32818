# expect: none
import torch


def optimise(scaler: torch.amp.GradScaler, optimizer):
    result = scaler.step(optimizer)
    scaler.update()
    return result
