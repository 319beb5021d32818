# expect: R28
import torch
def train(model, loader, loss_fn, optimizer, scaler, fgm):
    for batch, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=scaler.is_enabled()):
            loss = loss_fn(model(batch).view(-1), y)
        scaler.scale(loss).backward()
        if fgm is not None:
            if scaler.is_enabled():
                scaler.unscale_(optimizer)
            fgm.attack()
            with torch.autocast("cuda", enabled=scaler.is_enabled()):
                adv = loss_fn(model(batch).view(-1), y)
            scaler.scale(adv).backward()
            fgm.restore()
        scaler.step(optimizer)
        scaler.update()
def main(model, loader, fgm):
    o = torch.optim.AdamW(model.parameters())
    train(model, loader, torch.nn.MSELoss(), o, torch.amp.GradScaler("cuda"), fgm)
