# expect: R07
import torch
from torch import nn
import torch.nn.functional as F


class Clip:
    def __init__(self, max_norm): self.max_norm = max_norm
    def __call__(self, model): return nn.utils.clip_grad_norm_(model.parameters(), self.max_norm)
def train(model, opt, loader):
    clip = Clip(1.0)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        clip(model)
        scaler.step(opt)
        scaler.update()
