# sound: of several optimisers one is stepped per batch (the others are skipped), then update
import torch
def run(scaler, optimizers, loss, which):
    scaler.scale(loss).backward()
    for i, optimizer in enumerate(optimizers):
        if i != which:
            continue
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    for i, optimizer in enumerate(optimizers):
        optimizer.zero_grad()
def main(models, loader):
    optimizers = [torch.optim.Adam(m.parameters()) for m in models]
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        for which in (0, 1):
            with torch.autocast("cuda"):
                loss = models[which](x).mean()
            run(scaler, optimizers, loss, which)
