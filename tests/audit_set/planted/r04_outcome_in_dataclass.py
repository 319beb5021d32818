# expect: R04
import torch
import torch.nn.functional as F
from dataclasses import dataclass


@dataclass
class Report:
    loss: float
    stepped: object = None


class Runner:
    def __init__(self, model):
        self.model = model.cuda()
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")

    def one(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        result = self.scaler.step(self.opt)
        self.scaler.update()
        return Report(loss=loss.item(), stepped=result)

    def run(self, loader):
        skipped = 0
        for x, y in loader:
            report = self.one(x.cuda(), y.cuda())
            skipped += report.stepped is None
        return skipped
