# expect: R03
import torch
def train(model, loader, optimizer, k):
    scaler = torch.amp.GradScaler('cuda')
    for i, batch in enumerate(loader):
        with torch.autocast('cuda'):
            loss = model(batch) / k
        scaler.scale(loss).backward()
        if (i + 1) % k == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
