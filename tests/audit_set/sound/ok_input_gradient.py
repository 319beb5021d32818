# expect: none
import torch
import torch.nn.functional as F


def fgsm_training(model, loader, optimizer, eps):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        x.requires_grad_(True)
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        adv = (x + eps * x.grad.sign()).detach()
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(adv), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
