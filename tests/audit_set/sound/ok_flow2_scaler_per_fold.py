import torch
import torch.nn.functional as F


def train(model, opt, loader):
    for fold in range(5):
        scaler = torch.amp.GradScaler("cuda")
        for x, y in loader[fold]:
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
