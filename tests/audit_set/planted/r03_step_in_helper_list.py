# expect: R03
import torch
import torch.nn.functional as F


def finish(scaler, opts):
    for o in opts:
        scaler.step(o)
    scaler.update()
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    opt.zero_grad()
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        finish(scaler, [opt])
