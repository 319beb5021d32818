# expect: R07
import torch
import torch.nn.functional as F


def clip(model, max_norm):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)


def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        norm = clip(model, 1.0)
        scaler.step(opt)
        scaler.update()
