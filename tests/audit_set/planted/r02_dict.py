# expect: R02
import torch
def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler('cuda')
    for batch in loader:
        optimizer.zero_grad()
        with torch.autocast('cuda'):
            losses = model(batch)
            loss = sum(losses.values())
        loss.backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
