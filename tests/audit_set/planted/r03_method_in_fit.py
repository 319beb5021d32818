# expect: R03
import torch
from torch.amp import GradScaler, autocast


class Engine:
    def __init__(self, model, optimizer, loss_fn, device):
        self.model = model
        self.optimizer = optimizer
        self.loss_fn = loss_fn
        self.device = device
        self.scaler = GradScaler(device)

    def train_step(self, batch):
        x, y = (t.to(self.device) for t in batch)
        with autocast(self.device):
            loss = self.loss_fn(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            running = 0.0
            for batch in loader:
                running += self.train_step(batch)
            print(epoch, running / len(loader))
