# expect: R14
from torch.cuda import amp


class Trainer:
    def __init__(self, model, optimizer, use_amp):
        self.model, self.optimizer, self.use_amp = model, optimizer, use_amp
        self.scaler = amp.GradScaler(enabled=use_amp)

    def step(self, x, y, criterion):
        self.optimizer.zero_grad()
        with amp.autocast(enabled=self.use_amp):
            loss = criterion(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
