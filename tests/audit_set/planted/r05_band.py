# expect: R05
import torch


def check_scale(scaler: torch.amp.GradScaler, step: int) -> None:
    if step > 1000 and scaler.get_scale() < 2**14:
        raise RuntimeError("loss scale collapsed, training is unhealthy")


def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        check_scale(scaler, step)
