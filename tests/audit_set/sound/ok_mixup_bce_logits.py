# expect: none
import torch
from torch import nn
def train(model, loader, optimizer, mixup):
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.7]).cuda())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        x, y = mixup(x, y)
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
