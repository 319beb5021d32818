# expect: R02
import torch
from torch import nn
from dataclasses import dataclass
@dataclass
class Ctx:
    model: nn.Module
    opt: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
def step(ctx: Ctx, batch):
    with torch.autocast("cuda"):
        loss = ctx.model(**batch).loss
    loss.backward()
    ctx.scaler.step(ctx.opt)
    ctx.scaler.update()
    ctx.opt.zero_grad()
    return loss.detach()
def main(model, loader):
    opt = torch.optim.AdamW(model.parameters())
    ctx = Ctx(model, opt, torch.amp.GradScaler("cuda"))
    for b in loader:
        step(ctx, b)
