# expect: R07
import torch


def train(model, opt, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.clamp_(-1.0, 1.0)
        scaler.step(opt)
        scaler.update()
