# expect: R05
import torch
LIMIT = 2 ** 14
def after(scaler):
    scaler.update(new_scale=min(scaler.get_scale(), LIMIT))
def run(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            l = model(x).mean()
        scaler.scale(l).backward()
        scaler.step(opt)
        scaler.update()
        after(scaler)
