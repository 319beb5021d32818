# expect: R02
import torch
from torch.amp import GradScaler, autocast


class MultiTask:
    def __init__(self, model, optim):
        self.model, self.optim = model, optim
        self.grad_scaler = GradScaler("cuda", init_scale=2.0**14)

    def train_batch(self, batch):
        with autocast("cuda"):
            a, b = self.model.losses(batch)
        self.optim.zero_grad()
        torch.autograd.backward([a, b])
        self.grad_scaler.step(self.optim)
        self.grad_scaler.update()
