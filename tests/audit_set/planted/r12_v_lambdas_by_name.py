# expect: R12
import torch
import torch.nn.functional as F

LOSS = {
    "focal": lambda p, t: ((1 - p) ** 2 * F.binary_cross_entropy(p, t, reduction="none")).mean(),
    "bce": lambda p, t: F.binary_cross_entropy(p, t),
}


def step(model, x, y, cfg, scaler, opt):
    opt.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        prob = model(x).sigmoid()
        loss = LOSS[cfg["loss"]](prob, y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    return loss.item()
