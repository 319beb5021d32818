from contextlib import contextmanager

import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


class OptimWrapper:
    def __init__(self, optimizer, accumulative_counts=1, clip_grad=None):
        self.optimizer = optimizer
        self._accumulative_counts = accumulative_counts
        self.clip_grad_kwargs = clip_grad
        self._inner_count = 0

    def update_params(self, loss):
        loss = self.scale_loss(loss)
        self.backward(loss)
        if self.should_update():
            self.step()
            self.zero_grad()

    def scale_loss(self, loss):
        return loss / self._accumulative_counts

    def should_update(self):
        return self._inner_count % self._accumulative_counts == 0

    def zero_grad(self, **kw):
        self.optimizer.zero_grad(**kw)

    def backward(self, loss, **kw):
        loss.backward(**kw)
        self._inner_count += 1

    def _clip_grad(self):
        params = [p for g in self.optimizer.param_groups for p in g["params"] if p.grad is not None]
        if params:
            nn.utils.clip_grad_norm_(params, **self.clip_grad_kwargs)

    def step(self, **kw):
        if self.clip_grad_kwargs:
            self._clip_grad()
        self.optimizer.step(**kw)


class AmpOptimWrapper(OptimWrapper):
    def __init__(self, loss_scale="dynamic", dtype=None, **kw):
        super().__init__(**kw)
        if loss_scale == "dynamic":
            self.loss_scaler = GradScaler("cuda")
        else:
            self.loss_scaler = GradScaler("cuda", init_scale=loss_scale)
        self.cast_dtype = dtype

    def backward(self, loss, **kw):
        self.loss_scaler.scale(loss).backward(**kw)
        self._inner_count += 1

    def step(self, **kw):
        if self.clip_grad_kwargs:
            self.loss_scaler.unscale_(self.optimizer)
            self._clip_grad()
        self.loss_scaler.step(self.optimizer, **kw)
        self.loss_scaler.update(None)

    def state_dict(self):
        state = self.optimizer.state_dict()
        state["loss_scaler"] = self.loss_scaler.state_dict()
        return state

    @contextmanager
    def optim_context(self, model):
        with autocast("cuda", dtype=self.cast_dtype):
            yield
