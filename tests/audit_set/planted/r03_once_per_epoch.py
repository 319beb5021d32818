# expect: R03
import torch
from torch.amp import GradScaler, autocast


def train_epoch(model, loader, optimizer, scaler, criterion, device):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        with autocast("cuda"):
            out = model(x)
            loss = criterion(out, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def run(model, loader, optimizer, criterion, device, epochs):
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        train_epoch(model, loader, optimizer, scaler, criterion, device)
