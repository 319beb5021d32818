# expect: none
import torch
import torch.nn.functional as F


def step(model, x, y, opt, scaler):
    opt.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(x)
    loss = F.binary_cross_entropy(torch.sigmoid(logits.float()), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
