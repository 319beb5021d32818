# expect: R03
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        if not torch.isfinite(loss):
            opt.zero_grad()
            continue
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
