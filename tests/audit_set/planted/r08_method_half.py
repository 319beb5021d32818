# expect: R08
import torch


class System:
    def __init__(self, model):
        self.model = model.cuda().half()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, x, y, criterion):
        self.optimizer.zero_grad()
        loss = criterion(self.model(x.half()).float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
