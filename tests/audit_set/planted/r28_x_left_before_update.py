# expect: R28
import torch


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        if any(torch.isnan(p.grad).any() or torch.isinf(p.grad).any() for p in self.model.parameters()):
            self.optimizer.zero_grad()
            return
        self.scaler.step(self.optimizer)
        self.scaler.update()
