import torch


def train(model, losses, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            a, b = losses(model, batch)
        torch.autograd.backward(scaler.scale([a, b]))
        scaler.step(optimizer)
        scaler.update()
