# expect: R28
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        scaler.scale(model(x)).backward()
        opt.step()
        scaler.update()
