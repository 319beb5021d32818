import torch
def main(make, loaders):
    for fold, loader in enumerate(loaders):
        model = make().cuda()
        opt = torch.optim.AdamW(model.parameters())
        scaler = torch.amp.GradScaler("cuda")
        for x in loader:
            opt.zero_grad()
            with torch.autocast("cuda"):
                l = model(x).mean()
            scaler.scale(l).backward()
            scaler.step(opt)
            scaler.update()
