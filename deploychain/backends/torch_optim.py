"""Optimizer, learning-rate schedule and weight average of the training loop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer


def make_optimizer(
    model: nn.Module, name: str, *, lr: float, momentum: float = 0.9, weight_decay: float = 0.0
) -> Optimizer:
    """AdamW, or SGD with Nesterov momentum. Biases, norm weights and other vectors are not decayed."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    if name == "sgd":
        return SGD(groups, lr=lr, momentum=momentum, nesterov=momentum > 0)
    return AdamW(groups, lr=lr)


def lr_factor(schedule: str, warmup: int, total: int) -> Callable[[int], float]:
    """Factor on the peak learning rate at optimizer step ``n`` (from 0) of ``total``.

    Linear warm-up over ``warmup`` steps, then constant, or half a cosine down to zero after the last step.
    """

    def factor(n: int) -> float:
        if n < warmup:
            return (n + 1) / (warmup + 1)
        if schedule == "constant":
            return 1.0
        done = min((n - warmup) / max(total - warmup, 1), 1.0)
        return 0.5 * (1.0 + math.cos(math.pi * done))

    return factor


class Ema:
    """Exponential moving average of a model: parameters and floating-point buffers; other buffers are copied.

    The decay of update ``n`` is ``min(decay, (1 + n) / (10 + n))``, so that a short training is not held back by its
    first, random weights. Averaging the BatchNorm statistics together with the weights keeps them fitting to each
    other without another pass over the data.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        average, current = [], []
        for mean, value in zip(self._tensors(self.module), self._tensors(model), strict=True):
            if mean.is_floating_point():
                average.append(mean)
                current.append(value.detach())
            else:
                mean.copy_(value)
        torch._foreach_lerp_(average, current, 1.0 - decay)

    @staticmethod
    def _tensors(model: nn.Module) -> list[torch.Tensor]:
        return [*model.parameters(), *model.buffers()]
