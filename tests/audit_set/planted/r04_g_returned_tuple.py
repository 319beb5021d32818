# expect: R04
import torch
def amp_step(scaler, opt):
    r = scaler.step(opt)
    scaler.update()
    return r, scaler.get_scale()
def run(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for b in loader:
        scaler.scale(model(b)).backward()
        r, scale = amp_step(scaler, opt)
        if r is None:
            print("skipped at", scale)
        opt.zero_grad()
