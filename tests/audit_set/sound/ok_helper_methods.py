# expect: none
import torch


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def clip(self):
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def apply(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.reset()

    def reset(self):
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                p.grad = None

    def fit(self, loader):
        for batch in loader:
            with torch.autocast("cuda"):
                loss = self.model(batch)
            self.backward(loss)
            self.clip()
            self.apply()
