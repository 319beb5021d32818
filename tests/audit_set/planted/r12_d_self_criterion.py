# expect: R12
import torch
from torch import nn


class Trainer:
    def __init__(self, model, opt, cfg):
        self.model, self.opt = model, opt
        self.losses = {"cls": nn.BCELoss(), "reg": nn.SmoothL1Loss()}
        self.scaler = torch.amp.GradScaler("cuda", enabled=cfg["amp"])

    def step(self, x, y, box):
        self.opt.zero_grad()
        with torch.autocast("cuda", enabled=self.scaler.is_enabled()):
            p, b = self.model(x)
            loss = self.losses["cls"](p.sigmoid(), y) + self.losses["reg"](b, box)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
