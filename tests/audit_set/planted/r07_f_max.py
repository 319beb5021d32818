# expect: R07
import torch


def train(model, opt, loader, f):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(model(x), y)
        scaler.scale(loss).backward()
        biggest = max(p.grad.abs().max().item() for p in model.parameters() if p.grad is not None)
        if biggest > 10:
            print("large gradient", biggest)
        scaler.step(opt)
        scaler.update()
