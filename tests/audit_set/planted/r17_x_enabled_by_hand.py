# expect: R17
import torch


class Trainer:
    def __init__(self, model, optimizer, quantise_at):
        self.model, self.optimizer, self.quantise_at = model, optimizer, quantise_at
        self.scaler = torch.amp.GradScaler("cuda")

    def start_epoch(self, epoch):
        if epoch == self.quantise_at:
            self.scaler._enabled = False

    def step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
