# expect: R02
import torch


def train(model, criterion, loader, optimizer, device="cuda"):
    scaler = torch.amp.GradScaler(device)

    for x, y in loader:
        x, y = x.to(device), y.to(device)

        def closure():
            optimizer.zero_grad()
            with torch.autocast(device):
                loss = criterion(model(x), y)
            loss.backward()
            return loss

        loss = closure()
        scaler.step(optimizer)
        scaler.update()
        print(loss.item())
