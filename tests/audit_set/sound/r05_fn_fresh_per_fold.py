import torch
def run_fold(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            l = model(x).mean()
        scaler.scale(l).backward()
        scaler.step(opt)
        scaler.update()
def main(make, loaders):
    for fold, loader in enumerate(loaders):
        model, opt = make()
        run_fold(model, opt, loader)
