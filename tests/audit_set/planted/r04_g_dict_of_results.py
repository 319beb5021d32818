# expect: R04
import torch
def run(model, opts, loader):
    scaler = torch.amp.GradScaler("cuda")
    for b in loader:
        scaler.scale(model(b)).backward()
        rets = {}
        for name, o in opts.items():
            rets[name] = scaler.step(o)
        scaler.update()
        skipped = [n for n, r in rets.items() if r is None]
        for o in opts.values(): o.zero_grad()
