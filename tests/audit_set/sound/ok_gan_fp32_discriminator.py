# expect: none
import torch


def train(G, D, optG, optD, loader, d_loss, g_loss):
    scaler = torch.amp.GradScaler("cuda")
    for real, z in loader:
        loss_d = d_loss(D(real), D(G(z).detach()))
        optD.zero_grad()
        loss_d.backward()
        torch.nn.utils.clip_grad_norm_(D.parameters(), 10.0)
        optD.step()
        with torch.autocast("cuda", dtype=torch.float16):
            loss_g = g_loss(D(G(z)))
        optG.zero_grad()
        scaler.scale(loss_g).backward()
        scaler.step(optG)
        scaler.update()
