# expect: R07
import torch
from torch.nn.utils import clip_grad_norm_


def gan(g, d, opt_g, opt_d, loader, adv):
    scaler = torch.amp.GradScaler("cuda")
    for x, z in loader:
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            fake = g(z)
            d_loss = adv(d(x), d(fake.detach()))
        scaler.scale(d_loss).backward()
        scaler.unscale_(opt_d)
        clip_grad_norm_(d.parameters(), 1.0)
        scaler.step(opt_d)
        opt_g.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            g_loss = adv(d(fake), None)
        scaler.scale(g_loss).backward()
        clip_grad_norm_(g.parameters(), 1.0)
        scaler.step(opt_g)
        scaler.update()
