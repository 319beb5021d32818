# expect: R28
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        def closure():
            opt.zero_grad()
            loss = model(x)
            scaler.scale(loss).backward()
            return loss
        scaler.step(opt, closure)
        scaler.update()
