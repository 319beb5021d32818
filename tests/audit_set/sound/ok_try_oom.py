# expect: none
import torch


def train(model, loader, optimizer, scaler):
    for batch in loader:
        optimizer.zero_grad(set_to_none=True)
        try:
            with torch.autocast("cuda"):
                loss = model(batch)
            scaler.scale(loss).backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue
        scaler.step(optimizer)
        scaler.update()
