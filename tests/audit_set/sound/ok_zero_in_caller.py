# expect: none
import torch

scaler = torch.amp.GradScaler("cuda")


def one_step(model, batch, optimizer):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(batch)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad(set_to_none=True)
        one_step(model, batch, optimizer)
