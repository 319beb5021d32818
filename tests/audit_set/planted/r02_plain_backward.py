# expect: R02
import torch
from torch.cuda import amp  # deploychain: ignore[R14] pinned to torch 2.3


def train(model, loader, criterion, optimizer, epochs):
    scaler = amp.GradScaler()  # deploychain: ignore[R14]
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            scaler.step(optimizer)
            scaler.update()
