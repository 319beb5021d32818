# expect: R03
import torch


class Learner:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = torch.amp.GradScaler("cuda")

    def fit(self, loader, criterion, epochs):
        for _ in range(epochs):
            self.opt.zero_grad()
            for x, y in loader:
                self.one_batch(x, y, criterion)

    def one_batch(self, x, y, criterion):
        with torch.autocast("cuda"):
            loss = criterion(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
