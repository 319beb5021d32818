# expect: R12
from functools import partial

import torch
import torch.nn.functional as F

criterion = partial(F.binary_cross_entropy, reduction="mean")


def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            prob = torch.sigmoid(model(x))
            loss = criterion(prob, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
