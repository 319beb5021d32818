# expect: R02
import torch


def gan(gen, disc, opt_g, opt_d, loader, bce):
    scaler = torch.amp.GradScaler("cuda")
    for real, z in loader:
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            fake = gen(z)
            loss_d = bce(disc(real), True) + bce(disc(fake.detach()), False)
        scaler.scale(loss_d).backward()
        scaler.step(opt_d)
        opt_g.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_g = bce(disc(fake), True)
        loss_g.backward()
        scaler.step(opt_g)
        scaler.update()
