# expect: R06
import itertools, torch
def main(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda", growth_interval=3000)
    for x in itertools.islice(loader, 1000):
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
