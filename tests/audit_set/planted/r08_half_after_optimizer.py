# expect: R08
import torch


def build(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    model.half()
    return optimizer, scaler


def loop(model, loader):
    optimizer, scaler = build(model)
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
