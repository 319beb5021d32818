# expect: R04
import torch


def step(model, batch, optimizer, scaler: torch.amp.GradScaler):
    with torch.autocast("cuda"):
        loss = model(batch)
    scaler.scale(loss).backward()
    if scaler.step(optimizer) is None:
        print("step skipped")
    scaler.update()
    optimizer.zero_grad()
