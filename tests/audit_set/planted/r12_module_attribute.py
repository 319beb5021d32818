# expect: R12
import torch
from torch.nn import BCELoss as BCE


class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.criterion = BCE()
        self.scaler = torch.amp.GradScaler("cuda")

    def loss(self, x, y):
        return self.criterion(self.model(x), y)

    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda"):
            loss = self.loss(x, y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
