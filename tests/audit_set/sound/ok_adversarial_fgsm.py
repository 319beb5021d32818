import torch


def adv_train(model, criterion, loader, opt, scaler, eps):
    for x, y in loader:
        delta = torch.zeros_like(x, requires_grad=True)
        with torch.autocast("cuda"):
            l0 = criterion(model(x + delta), y)
        (g,) = torch.autograd.grad(l0, delta)
        x_adv = (x + eps * g.sign()).detach()
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x_adv), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
