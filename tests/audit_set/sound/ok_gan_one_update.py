# expect: none
import torch


def train(netG, netD, optG, optD, loader, g_loss, d_loss, noise):
    scaler = torch.amp.GradScaler("cuda")
    for real in loader:
        optD.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            fake = netG(noise())
            errD = d_loss(netD(real), netD(fake.detach()))
        scaler.scale(errD).backward()
        scaler.step(optD)

        optG.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            errG = g_loss(netD(fake))
        scaler.scale(errG).backward()
        scaler.step(optG)
        scaler.update()
