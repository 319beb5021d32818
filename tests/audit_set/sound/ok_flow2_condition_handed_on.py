import torch
from torch import nn
import torch.nn.functional as F


def maybe_step(scaler, opt, do):
    if do:
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
def train(model, opt, loader, k):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        last = (i + 1) % k == 0 or i + 1 == len(loader)
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y) / k
        scaler.scale(loss).backward()
        if last:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        maybe_step(scaler, opt, last)
