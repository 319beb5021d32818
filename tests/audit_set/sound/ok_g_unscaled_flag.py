# expect: none
import torch
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for i, x in enumerate(loader):
        opt.zero_grad()
        scaler.scale(model(x)).backward()
        unscaled = False
        if i % 100 == 0:
            scaler.unscale_(opt)
            unscaled = True
            print(torch.stack([p.grad.norm() for p in model.parameters()]).norm())
        if not unscaled:
            scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
