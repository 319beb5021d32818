import torch
import torch.nn.functional as F


def train(model, opts, loader, which):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        for o in opts: o.zero_grad()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        for j, o in enumerate(opts):
            if j == which:
                scaler.step(o)
                scaler.update()
