# expect: R07
import torch
def f(model, batch, opt, scaler):
    opt.zero_grad()
    with torch.autocast('cuda'):
        loss = model(batch)
    scaler.scale(loss).backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.norm(torch.stack([torch.norm(g) for g in grads]))
    print(norm)
    scaler.step(opt)
    scaler.update()
