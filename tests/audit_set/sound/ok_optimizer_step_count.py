# expect: none
import torch
def train(model, loader, optimizer, scheduler):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scale_before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        optimizer_was_run = scale_before <= scaler.get_scale()
        if optimizer_was_run:
            scheduler.step()
