# expect: R07
import torch
def f(model, batch, opt, scaler):
    opt.zero_grad()
    with torch.autocast('cuda'):
        loss = model(batch)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
