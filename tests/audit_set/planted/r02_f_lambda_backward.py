# expect: R02
import torch

backprop = lambda loss: loss.backward()


def train(model, opt, loader, f):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(model(x), y)
        backprop(loss)
        scaler.step(opt)
        scaler.update()
