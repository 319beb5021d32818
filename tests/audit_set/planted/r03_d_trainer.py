# expect: R03
import torch


class Engine:
    def __init__(self, model, optimizer, criterion):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def train_epoch(self, loader):
        self.optimizer.zero_grad()
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.criterion(self.model(x), y)
            self.step(loss)
