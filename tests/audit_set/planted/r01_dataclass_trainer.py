# expect: R01
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Trainer:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler = field(default_factory=lambda: torch.amp.GradScaler("cuda"))

    def step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            pred = self.model(x)
        loss = nn.functional.cross_entropy(pred, y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
