import torch


def train(model, criterion, loader, optimizer, scaler):
    for x, y in loader:
        try:
            with torch.autocast("cuda"):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
        finally:
            optimizer.zero_grad(set_to_none=True)
