# expect: R05
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    scales = []
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            l = model(x).mean()
        scaler.scale(l).backward()
        scaler.step(opt)
        scaler.update()
        scales.append(scaler.get_scale())
    bad = [s for s in scales if s < 2**14 or s > 2**18]
    if bad:
        raise SystemExit("unhealthy loss scale")
