# expect: R03
import torch


def train(model, criterion, stream, optimizer, max_steps):
    scaler = torch.amp.GradScaler("cuda")
    step = 0
    while step < max_steps:
        x, y = next(stream)
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        step += 1
        if step % 100 == 0:
            print(step, loss.item())
