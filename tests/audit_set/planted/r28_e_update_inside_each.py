# expect: R28
import torch


def opt_step(scaler, opt, loss):
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()


def train(a, b, opt_a, opt_b, loader, f):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt_a.zero_grad()
        opt_b.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            la = f(a(x), y)
            lb = f(b(x), y)
        scaler.scale(la + lb).backward()
        for opt in (opt_a, opt_b):
            scaler.step(opt)
            scaler.update()
