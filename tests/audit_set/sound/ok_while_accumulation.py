import torch


def train(model, criterion, stream, optimizer, scaler, k, total):
    step = micro = 0
    while step < total:
        x, y = next(stream)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(x), y) / k
        scaler.scale(loss).backward()
        micro += 1
        if micro < k:
            continue
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        micro = 0
        step += 1
