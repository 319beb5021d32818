# expect: none
import math
import sys
import torch
def train(model, loader, optimizer, max_norm):
    scaler = torch.amp.GradScaler("cuda")
    for samples, targets in loader:
        with torch.autocast("cuda"):
            loss_dict = model(samples, targets)
            losses = sum(loss_dict.values())
        loss_value = losses.item()
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        scaler.scale(losses).backward()
        if max_norm > 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
