# expect: R07
import torch
from torch.nn.utils import clip_grad


def train(model, criterion, loader, optimizer, scaler, prof):
    for x, y in loader:
        try:
            with torch.autocast("cuda"):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            clip_grad.clip_grad_norm_(model.parameters(), max_norm=5.0)
            scaler.step(optimizer)
            scaler.update()
        finally:
            optimizer.zero_grad()
            prof.step()
