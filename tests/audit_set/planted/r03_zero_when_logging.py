# expect: R03
import torch
import torch.nn.functional as F


def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    it = iter(loader)
    step = 0
    while step < 10000:
        x, y = next(it)
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        step += 1
        if step % 100 == 0:
            opt.zero_grad()
            print(step, loss.item())
