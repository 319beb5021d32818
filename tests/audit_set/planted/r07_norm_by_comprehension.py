# expect: R07
import math

import torch


def train(model, criterion, loader, optimizer, writer):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        total = math.sqrt(sum(p.grad.norm().item() ** 2 for p in model.parameters() if p.grad is not None))
        writer.add_scalar("grad_norm", total, i)
        scaler.step(optimizer)
        scaler.update()
