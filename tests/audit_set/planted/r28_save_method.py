# expect: R28
import torch


class Experiment:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda")
        self.epoch = 0

    def train_batch(self, x, y, criterion):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda"):
            loss = criterion(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def save(self, path):
        state = {"epoch": self.epoch}
        state["model"] = self.model.state_dict()
        state["optimizer"] = self.optimizer.state_dict()
        torch.save(state, path)
