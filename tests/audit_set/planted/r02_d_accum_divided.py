# expect: R02
import torch
import torch.nn.functional as F
from torch.amp import GradScaler, autocast


def run(model, opt, loader, n=4):
    scaler = GradScaler("cuda")
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        with autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        loss = loss / n
        loss.backward()
        if (i + 1) % n == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
