# expect: none
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        params = list(model.parameters())
        grads = torch.autograd.grad(scaler.scale(loss), params)
        for p, g in zip(params, grads):
            p.grad = g
        scaler.step(opt)
        scaler.update()
