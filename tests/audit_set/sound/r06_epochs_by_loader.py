import torch
def main(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda", growth_interval=4000)
    for ep in range(90):
        for x in loader:
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
