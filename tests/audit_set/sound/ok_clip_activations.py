import torch


def step(model, x, y, opt, scaler, criterion):
    opt.zero_grad()
    with torch.autocast("cuda"):
        out = torch.clamp(model(x), -30, 30)
        loss = criterion(out, y)
    scaler.scale(loss).backward()
    loss_log = loss.detach().clamp(max=10)
    scaler.step(opt)
    scaler.update()
    return loss_log
