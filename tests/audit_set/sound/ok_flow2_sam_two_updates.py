import torch
import torch.nn.functional as F


class SAMish:
    def __init__(self, opt): self.opt = opt
    def first(self):
        for g in self.opt.param_groups:
            for p in g["params"]: p.data.add_(p.grad / (p.grad.norm() + 1e-12), alpha=0.05)
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    sam = SAMish(opt)
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        sam.first()
        scaler.update()
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
