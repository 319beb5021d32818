# expect: R03
import torch
def train(model, opt, loader, accum=8):
    scaler = torch.amp.GradScaler("cuda")
    for step, (x, y) in enumerate(loader, 1):
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y) / accum
        scaler.scale(loss).backward()
        if step % accum == 0:
            scaler.step(opt)
            scaler.update()
