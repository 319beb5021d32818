# expect: none
import torch


def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(batch)
        scaler.scale(loss).backward()
        # deploychain: ignore[R07] max_norm is given in scaled units
        torch.nn.utils.clip_grad_norm_(model.parameters(), 65536.0)
        scaler.step(optimizer)
        scaler.update()
