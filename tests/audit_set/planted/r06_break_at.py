# expect: R06
import torch
def main(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda", growth_interval=5000)
    for step, x in enumerate(loader):
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        if step + 1 >= 2500:
            break
