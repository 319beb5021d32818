import torch
from translate.builders import build_clipper


class Manager:
    def __init__(self, model, optimizer, cfg):
        self.model, self.optimizer = model, optimizer
        self.clip_grad_fun = build_clipper(cfg)
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        self.clip_grad_fun(parameters=self.model.parameters())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()

    def other(self, loss):
        self.scaler.scale(loss).backward()
        self.clip_grad_fun(self.model.parameters(), scaler=self.scaler)  # which may unscale in there
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
