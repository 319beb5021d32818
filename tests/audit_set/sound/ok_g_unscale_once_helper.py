# expect: none
import torch
def unscale_once(scaler, o, done):
    if id(o) not in done:
        scaler.unscale_(o)
        done.add(id(o))
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        done = set()
        opt.zero_grad()
        scaler.scale(model(x)).backward()
        unscale_once(scaler, opt, done)
        unscale_once(scaler, opt, done)
        scaler.step(opt)
        scaler.update()
