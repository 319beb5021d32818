# expect: R07
import torch


def noisy_step(model, batch, optimizer, scaler, sigma):
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = model(batch)
    scaler.scale(loss).backward()
    for param in model.parameters():
        if param.grad is not None:
            param.grad += sigma * torch.randn_like(param)
    scaler.step(optimizer)
    scaler.update()
