# expect: R04
import torch


def train(model, opt, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    n = 0
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        skipped = scaler.step(opt) is None
        scaler.update()
        n += skipped
    return n
