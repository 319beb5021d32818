# expect: R28
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    ck = torch.load("x.pt")
    model.load_state_dict(ck["model"]); opt.load_state_dict(ck["optimizer"])
    for x in loader:
        opt.zero_grad()
        scaler.scale(model(x)).backward()
        scaler.step(opt); scaler.update()
    torch.save({"model": model.state_dict(), "optimizer": opt.state_dict(), "scaler": scaler.state_dict()}, "x.pt")
