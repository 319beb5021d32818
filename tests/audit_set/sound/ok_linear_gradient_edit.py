# expect: none
import torch
import torch.distributed as dist


def average_gradients(model, world):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad.div_(world)


def step(model, batch, optimizer, scaler, world):
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = model(batch)
    scaler.scale(loss).backward()
    average_gradients(model, world)
    scaler.step(optimizer)
    scaler.update()
