import time
from contextlib import contextmanager

import torch
from torch.amp import GradScaler, autocast


class SimpleTrainer:
    def __init__(self, model, data_loader, optimizer, zero_grad_before_forward=False):
        self.model, self.optimizer = model, optimizer
        self._data_loader_iter = iter(data_loader)
        self.zero_grad_before_forward = zero_grad_before_forward

    def after_backward(self):
        pass


class AMPTrainer(SimpleTrainer):
    def __init__(self, model, data_loader, optimizer, grad_scaler=None, precision=torch.float16):
        super().__init__(model, data_loader, optimizer)
        if grad_scaler is None:
            grad_scaler = GradScaler("cuda")
        self.grad_scaler = grad_scaler
        self.precision = precision

    def run_step(self):
        assert self.model.training, "[AMPTrainer] model was changed to eval mode!"
        start = time.perf_counter()
        data = next(self._data_loader_iter)
        data_time = time.perf_counter() - start
        if self.zero_grad_before_forward:
            self.optimizer.zero_grad()
        with autocast("cuda", dtype=self.precision):
            loss_dict = self.model(data)
            if isinstance(loss_dict, torch.Tensor):
                losses = loss_dict
            else:
                losses = sum(loss_dict.values())
        if not self.zero_grad_before_forward:
            self.optimizer.zero_grad()
        self.grad_scaler.scale(losses).backward()
        self.after_backward()
        self.write(loss_dict, data_time)
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()

    def state_dict(self):
        return {"grad_scaler": self.grad_scaler.state_dict()}

    @contextmanager
    def write_scope(self):
        yield

    def write(self, losses, t):
        with self.write_scope():
            print({k: v.detach().item() for k, v in losses.items()}, t)
