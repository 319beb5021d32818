# expect: R07
import torch
import torch.nn as nn


def train(model, loader, optimizer, scaler, accumulate=4, clip=1.0):
    optimizer.zero_grad(set_to_none=True)
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x), y) / accumulate
        scaled = scaler.scale(loss)
        scaled.backward()
        if (i + 1) % accumulate == 0:
            nn.utils.clip_grad_value_(model.parameters(), clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
