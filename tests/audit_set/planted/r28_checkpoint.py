# expect: R28
import torch


def train(model, loader, optimizer, path):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(90):
        for batch in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                loss = model(batch)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
