# expect: R28
import torch
def save_checkpoint(path, model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)
def train(model, loader, optimizer, path):
    scaler = torch.amp.GradScaler('cuda')
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast('cuda'):
            loss = model(x)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    save_checkpoint(path, model, optimizer, 1)
