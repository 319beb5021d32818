# expect: R02
import torch


class Base:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    @property
    def scaler(self):
        return self._scaler


class Trainer(Base):
    def __init__(self, model, opt, loss_fn):
        super().__init__()
        self.model, self.opt, self.loss_fn = model, opt, loss_fn

    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.scaler.step(self.opt)
        self.scaler.update()
