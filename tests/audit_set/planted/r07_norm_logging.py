# expect: R07
import torch


def grad_norm(model):
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += p.grad.norm().item() ** 2
    return total**0.5


def train(model, loader, optimizer, writer):
    scaler = torch.amp.GradScaler("cuda")
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(batch)
        scaler.scale(loss).backward()
        writer.add_scalar("train/grad_norm", grad_norm(model), step)
        scaler.step(optimizer)
        scaler.update()
