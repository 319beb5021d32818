# expect: R04
import torch
def amp_step(scaler, opt):
    stepped = scaler.step(opt)
    scaler.update()
    return {"stepped": stepped}
def run(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for b in loader:
        scaler.scale(model(b)).backward()
        info = amp_step(scaler, opt)
        if info["stepped"] is None:
            print("skipped")
        opt.zero_grad()
