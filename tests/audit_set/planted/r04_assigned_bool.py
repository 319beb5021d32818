# expect: R04
import torch


def step(scaler, optimizer, scheduler):
    stepped = scaler.step(optimizer) is not None
    scaler.update()
    if stepped:
        scheduler.step()
