# expect: R01
import torch
from torch import nn
from torch.amp import GradScaler, autocast as ac


class Trainer:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer
        self.scaler = GradScaler("cuda")
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with ac("cuda", dtype=torch.float16):
            out = self.net(images)
        loss = self.criterion(out, labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()
