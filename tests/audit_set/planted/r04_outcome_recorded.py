# expect: R04
import torch
import torch.nn.functional as F


class Meter:
    def __init__(self):
        self.skips = 0

    def record(self, outcome):
        if outcome is None:
            self.skips += 1


def train(model, loader):
    opt = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    meter = Meter()
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        outcome = scaler.step(opt)
        scaler.update()
        meter.record(outcome)
