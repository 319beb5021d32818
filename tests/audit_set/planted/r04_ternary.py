# expect: R04
import torch


def update(model, loss, optimizer, scaler, meter):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    step_out = scaler.step(optimizer)
    scaler.update()
    meter["skips"] += 1 if step_out is None else 0
    return step_out != None  # noqa: E711
