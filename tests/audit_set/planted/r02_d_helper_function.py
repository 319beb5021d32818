# expect: R02
import torch
import torch.nn.functional as F


def backprop(loss, accum):
    (loss / accum).backward()


def main(model, opt, loader, accum):
    scaler = torch.amp.GradScaler("cuda")
    for it, (x, y) in enumerate(loader, 1):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.l1_loss(model(x), y)
        backprop(loss, accum)
        if it % accum == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
