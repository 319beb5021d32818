# expect: R01
import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


def train_one_epoch(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    scaler = GradScaler("cuda")
    model.train()
    for images, targets in loader:
        images, targets = images.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with autocast("cuda", dtype=torch.float16):
            logits = model(images)
        loss = criterion(logits, targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
