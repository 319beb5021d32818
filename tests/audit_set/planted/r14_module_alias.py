# expect: R14
import torch.cuda.amp as cuda_amp


def train(model, criterion, loader, optimizer):
    scaler = cuda_amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with cuda_amp.autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
