import torch


def dice(p, t, eps=1e-8):
    inter = (p * t).sum()
    return 1 - 2 * inter / (p.sum() + t.sum() + eps)


def train(unet, loader, opt, scaler):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = dice(torch.sigmoid(unet(x)), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
