# expect: R03
import torch
import torch.nn.functional as F


def train(model, opt, stream):
    scaler = torch.amp.GradScaler("cuda")
    opt.zero_grad()
    it = iter(stream)
    while (batch := next(it, None)) is not None:
        x, y = batch
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
