import torch


def train(model, vae, criterion, loader, opt, scaler):
    for x, y in loader:
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float32):
            latents = vae.encode(x.cuda())
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(latents)
        with torch.autocast("cuda", dtype=torch.float32):
            loss = criterion(out.float(), y.cuda())
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
