from functools import partial

import torch
import torch.nn.functional as F

loss_fn = partial(F.mse_loss, reduction="mean")


def step(model, x, y, opt, scaler):
    opt.zero_grad()
    with torch.autocast("cuda"):
        out = model(x)
    loss = loss_fn(out.float(), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
