# expect: R05
import torch
def run(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**13)
    for i, x in enumerate(loader):
        opt.zero_grad()
        with torch.autocast("cuda"):
            l = model(x).mean()
        scaler.scale(l).backward()
        scaler.step(opt)
        scaler.update()
        if i % 100 == 0:
            cur = scaler._scale.item()
            if cur < 1024.0:
                scaler.update(cur * 2.0)
