# expect: R28
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for p in model.backbone.parameters():
        p.requires_grad = False
    opt_b = torch.optim.SGD(model.backbone.parameters(), 0.1)
    for x in loader:
        opt.zero_grad(); opt_b.zero_grad()
        scaler.scale(model(x)).backward()
        scaler.step(opt); scaler.step(opt_b)
        scaler.update()
