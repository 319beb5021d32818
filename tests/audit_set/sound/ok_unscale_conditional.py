# expect: none
import torch


def train(model, loader, optimizer, scaler, clip):
    for batch in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(batch)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            if not torch.isfinite(norm):
                print("non-finite gradient norm")
        scaler.step(optimizer)
        scaler.update()
