# expect: none
import torch
def amp_step(scaler, opt):
    if scaler is None:
        return opt.step()
    before = scaler.get_scale()
    scaler.step(opt)
    scaler.update()
    return scaler.get_scale() >= before
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for b in loader:
        scaler.scale(model(b)).backward()
        if not amp_step(scaler, opt):
            print("skipped")
        opt.zero_grad()
