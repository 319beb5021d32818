# expect: R11
import torch
import torch.nn.functional as F


def info_nce(q, k, temperature):
    sim = q @ k.t() / temperature
    e = torch.exp(sim)
    pos = torch.diagonal(e)
    return -torch.log(pos / e.sum(dim=1)).mean()


def train(encoder, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for a, b in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = info_nce(encoder(a), encoder(b), 0.07)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
