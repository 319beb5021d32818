# expect: R28
from torch.amp import GradScaler, autocast


class Runner:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = GradScaler("cuda")

    def train(self, loader, criterion):
        for x, y in loader:
            self.optimizer.zero_grad()
            with autocast("cuda"):
                loss = criterion(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
