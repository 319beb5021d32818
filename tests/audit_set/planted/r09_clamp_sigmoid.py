# expect: R09
import torch
from torch import nn


def step(net, x, y, scaler, opt):
    opt.zero_grad()
    with torch.amp.autocast("cuda"):
        logits = nn.functional.linear(x, net.weight)
        p = torch.sigmoid(logits).clamp(min=1e-12)
        loss = -(y * p.log()).mean()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
