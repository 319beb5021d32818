# expect: R07
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
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        scaler.step(opt_e)
        scaler.step(opt_d)
        scaler.update()
