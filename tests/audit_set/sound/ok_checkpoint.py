# expect: none
import torch


def save(path, model, optimizer, scaler, epoch):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    if scaler is not None:
        state["scaler"] = scaler.state_dict()
    torch.save(state, path)


def train(model, loader, optimizer, path):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(10):
        for batch in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                loss = model(batch)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        save(path, model, optimizer, scaler, epoch)
