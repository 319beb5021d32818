# expect: R06
import torch

MAX_STEPS = 500


def finetune(model, stream, optimizer):
    scaler = torch.amp.GradScaler("cuda", growth_interval=2000)
    for step in range(MAX_STEPS):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(next(stream))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
