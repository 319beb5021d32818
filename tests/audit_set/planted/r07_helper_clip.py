# expect: R07
import torch
from torch.nn.utils import clip_grad_norm_


def clip(model, limit):
    return clip_grad_norm_(model.parameters(), limit)


def train(model, criterion, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        clip(model, 1.0)
        scaler.step(optimizer)
        scaler.update()
