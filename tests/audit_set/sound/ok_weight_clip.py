import torch


def train_critic(critic, loader, opt, scaler):
    for real, fake in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = critic(fake).mean() - critic(real).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-0.01, 0.01)
