# expect: R03
import torch
import torch.nn.functional as F


def train(model, opt, loader, epochs, accum):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(epochs):
        model.train()
        opt.zero_grad()
        for i, (x, y) in enumerate(loader):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y) / accum
            scaler.scale(loss).backward()
            if i % accum == accum - 1:
                scaler.step(opt)
                scaler.update()
