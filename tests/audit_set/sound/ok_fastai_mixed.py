import torch
from torch.amp import GradScaler, autocast


class MixedPrecision:
    order = 10

    def before_fit(self):
        self.scaler = GradScaler("cuda")
        self.autocast = autocast("cuda")

    def before_batch(self):
        self.autocast.__enter__()

    def after_loss(self):
        self.autocast.__exit__(None, None, None)
        self.learn.loss_grad = self.scaler.scale(self.learn.loss_grad)

    def before_step(self):
        self.scaler.step(self.opt)
        self.scaler.update()
