# expect: R09
import torch


def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            h = torch.nn.functional.linear(x, model.weight)
            w = h.abs()
            scaled = h / (w + 1e-9)
            loss = ((scaled - y) ** 2).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
