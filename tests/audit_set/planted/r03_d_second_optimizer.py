# expect: R03
import torch


def train(enc, dec, opt_e, opt_d, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt_e.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(dec(enc(x)), y)
        scaler.scale(loss).backward()
        scaler.step(opt_e)
        scaler.step(opt_d)
        scaler.update()
