# expect: R07
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, optimizer, clip_value=0.5):
        self.model = model
        self.optimizer = optimizer
        self.clip_value = clip_value
        self.scaler = torch.amp.GradScaler("cuda", enabled=True)

    def optimise(self, loss):
        self.scaler.scale(loss).backward()
        if self.clip_value is not None:
            nn.utils.clip_grad_value_(self.model.parameters(), clip_value=self.clip_value)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
