# expect: R11
import torch


def d_loss_fn(real_logits, fake_logits):
    return -(torch.log(torch.sigmoid(real_logits)) + torch.log(1 - torch.sigmoid(fake_logits))).mean()


def train(D, G, loader, opt, scaler):
    for real, z in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = d_loss_fn(D(real), D(G(z).detach()))
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
