# expect: R28
import torch
from torch.nn.utils import clip_grad_norm_


class Opt:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def norm(self):
        self.scaler.unscale_(self.optimizer)
        return clip_grad_norm_(self.model.parameters(), float("inf"))

    def step(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        total = self.norm()
        self.scaler.unscale_(self.optimizer)
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return total
