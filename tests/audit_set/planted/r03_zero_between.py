# expect: R03
import torch


def train(model, data, optimizer, steps):
    scaler = torch.amp.GradScaler("cuda")
    it = iter(data)
    step = 0
    while step < steps:
        x, y = next(it)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if loss.item() > 100:
            optimizer.zero_grad()
            continue
        scaler.step(optimizer)
        scaler.update()
        step += 1
