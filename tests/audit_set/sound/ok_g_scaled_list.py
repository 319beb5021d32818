# expect: none
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            losses = [model(x, y), model(y, x)]
        losses = [scaler.scale(l) for l in losses]
        for l in losses:
            l.backward()
        scaler.step(opt)
        scaler.update()
