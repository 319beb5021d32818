# expect: R02
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    scale, step, update = scaler.scale, scaler.step, scaler.update
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        loss.backward()
        step(opt)
        update()
