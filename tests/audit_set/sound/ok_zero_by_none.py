# expect: none
import torch


def train(model, loader, optimizer, scaler):
    for batch in loader:
        for param in model.parameters():
            param.grad = None
        with torch.autocast("cuda"):
            loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
