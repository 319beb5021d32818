# expect: none
import torch
def train(model, opt, loader, steps):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        if i % 4 == 0:
            opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y) / 4
        scaler.scale(loss).backward()
        if i % 4 == 3:
            scaler.step(opt)
            scaler.update()
