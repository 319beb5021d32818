# expect: R05
import torch
def train(model, opt, loader, scaler):
    best = 1e9
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        if not torch.isfinite(loss):
            new = scaler.get_scale() / 2
            scaler.update(new)
        else:
            scaler.update()
