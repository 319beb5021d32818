# expect: R07
import torch


def dp_step(model, loss, optimizer, scaler, sigma):
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    for p in model.parameters():
        if p.grad is not None:
            p.grad.add_(torch.randn_like(p.grad), alpha=sigma)
    scaler.step(optimizer)
    scaler.update()
