import torch
import torch.nn.functional as F
from mylib.scaler import GradScaler
def train(model, opt, loader):
    scaler = GradScaler()
    for x, y in loader:
        def closure():
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            return loss
        scaler.step(opt, closure)
        scaler.update()
