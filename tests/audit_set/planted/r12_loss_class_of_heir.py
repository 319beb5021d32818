# expect: R12
import torch
from torch import nn

class Trainer:
    loss_class = nn.CrossEntropyLoss

    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.loss = self.loss_class()
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

class TagTrainer(Trainer):
    loss_class = nn.BCELoss

def main(net, opt, loader):
    trainer = TagTrainer(net, opt)
    for x, y in loader:
        trainer.step(x, y)
