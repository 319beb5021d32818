# expect: R05
import torch
def run(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x).mean()
        if torch.isnan(loss):
            scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
            continue
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
