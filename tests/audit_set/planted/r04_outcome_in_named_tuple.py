# expect: R04
import torch
import torch.nn.functional as F
from typing import NamedTuple, Any


class StepResult(NamedTuple):
    loss: float
    outcome: Any


def step(model, opt, scaler, x, y):
    opt.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
    scaler.scale(loss).backward()
    outcome = scaler.step(opt)
    scaler.update()
    return StepResult(loss.item(), outcome)


def train(model, loader):
    opt = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    skipped = 0
    for x, y in loader:
        res = step(model, opt, scaler, x, y)
        if res.outcome is None:
            skipped += 1
    return skipped
