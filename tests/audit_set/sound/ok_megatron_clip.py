import torch


def clip_grad_norm(optimizer, max_norm):
    params = [p for g in optimizer.param_groups for p in g["params"]]
    norm = torch.nn.utils.clip_grad_norm_(params, max_norm)
    return norm


def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        loss.backward()
        clip_grad_norm(optimizer, 1.0)
        optimizer.step()
