# expect: none
import torch


def train(model, loader, optimizers):
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        for opt in optimizers:
            opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(batch)
        scaler.scale(loss).backward()
        for opt in optimizers:
            scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in optimizers:
            scaler.step(opt)
        scaler.update()
