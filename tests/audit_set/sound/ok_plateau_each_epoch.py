import torch


def fit(model, criterion, train_loader, evaluate, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    for _ in range(10):
        for x, y in train_loader:
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        sched.step(evaluate(model))
