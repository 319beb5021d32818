# expect: R27
import torch


def train_step(model, x, y, optimizer, scaler):
    optimizer.zero_grad()
    with torch.autocast(device_type="cuda", dtype=torch.float32):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
