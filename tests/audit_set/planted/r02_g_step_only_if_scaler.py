# expect: R02
import torch
def train(model, opt, loader, args):
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", enabled=args.amp):
            loss = model(x, y)
        loss.backward()
        if scaler is not None:
            scaler.step(opt)
            scaler.update()
        else:
            opt.step()
