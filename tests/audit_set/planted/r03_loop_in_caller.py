# expect: R03
import torch


class Runner:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def _backward(self, loss):
        self.scaler.scale(loss).backward()

    def _step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def run(self, loader):
        for batch in loader:
            with torch.autocast("cuda"):
                loss = self.model(batch)
            self._backward(loss)
            self._step()
