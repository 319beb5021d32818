import torch
import torch.nn.functional as F


def train(gen, disc, loader, warmup=1000):
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-4)
    opt_d = torch.optim.Adam(disc.parameters(), lr=2e-4)
    scaler = torch.amp.GradScaler("cuda")
    for it, (x, y) in enumerate(loader):
        opt_g.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            fake = gen(x.cuda())
            g_loss = F.l1_loss(fake, y.cuda())
        scaler.scale(g_loss).backward()
        scaler.step(opt_g)
        if it > warmup:
            opt_d.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):
                d_loss = F.softplus(disc(fake.detach())).mean() + F.softplus(-disc(y.cuda())).mean()
            scaler.scale(d_loss).backward()
            scaler.step(opt_d)
        scaler.update()
