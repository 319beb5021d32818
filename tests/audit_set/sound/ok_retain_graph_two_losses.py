import torch
from torch.amp import autocast, GradScaler

scaler = GradScaler("cuda")


def step(model0, model1, opt0, opt1, x, y, loss_fn):
    opt0.zero_grad()
    opt1.zero_grad()
    with autocast("cuda", dtype=torch.float16):
        out0, out1 = model0(x), model1(x)
        loss0 = loss_fn(2 * out0 + 3 * out1, y)
        loss1 = loss_fn(3 * out0 - 5 * out1, y)
    scaler.scale(loss0).backward(retain_graph=True)
    scaler.scale(loss1).backward()
    scaler.unscale_(opt0)
    scaler.step(opt0)
    scaler.step(opt1)
    scaler.update()
