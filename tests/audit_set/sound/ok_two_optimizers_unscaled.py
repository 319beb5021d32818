# expect: none
import itertools

import torch


def train(encoder, decoder, loader, loss_fn):
    opt_e = torch.optim.AdamW(encoder.parameters(), lr=1e-4)
    opt_d = torch.optim.AdamW(decoder.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt_e.zero_grad()
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(decoder(encoder(x)), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt_e)
        scaler.unscale_(opt_d)
        torch.nn.utils.clip_grad_norm_(itertools.chain(encoder.parameters(), decoder.parameters()), 1.0)
        torch.nn.utils.clip_grad_norm_(decoder.head.parameters(), 0.5)
        scaler.step(opt_e)
        scaler.step(opt_d)
        scaler.update()
