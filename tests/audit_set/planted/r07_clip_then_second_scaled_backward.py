# expect: R07
import torch
def train(loader, model, criterion, optimizer, scaler, fgm):
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        fgm.attack()
        with torch.autocast("cuda"):
            adv = criterion(model(x), y)
        scaler.scale(adv).backward()
        fgm.restore()
        scaler.step(optimizer)
        scaler.update()
def main(model, loader, c, fgm):
    train(loader, model, c, torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda"), fgm)
