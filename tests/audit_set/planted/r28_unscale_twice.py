# expect: R28
import torch
def f(model, batch, opt, scaler):
    opt.zero_grad()
    with torch.autocast('cuda'):
        loss = model(batch)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_value_(model.parameters(), 5.0)
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
