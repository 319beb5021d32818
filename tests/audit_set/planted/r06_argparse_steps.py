# expect: R06
import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--iters", type=int, default=3000)
p.add_argument("--growth_interval", type=int, default=5000)
args = p.parse_args()
def main(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda", growth_interval=args.growth_interval)
    it = 0
    while it < args.iters:
        for x in loader:
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            it += 1
