# expect: R28
import torch
import torch.nn.functional as F


def train(model, opt, loader):
    for x, y in loader:
        scaler = torch.amp.GradScaler("cuda")
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
