# expect: R04
import torch
def advance(scaler, opt):
    out = scaler.step(opt)
    scaler.update()
    return out is not None
def train(model, opt, sched, loader):
    scaler = torch.amp.GradScaler('cuda')
    for x in loader:
        opt.zero_grad()
        with torch.autocast('cuda', dtype=torch.float16):
            loss = model(x).float().mean()
        scaler.scale(loss).backward()
        if advance(scaler, opt):
            sched.step()
