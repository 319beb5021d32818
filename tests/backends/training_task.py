"""A task for tests that train in processes of their own: random augmentation, BatchNorm, dropout; tiny and quick."""

from __future__ import annotations

import math
import os
import random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset


class Blobs(Dataset[Any]):
    """Three Gaussian blobs in eight dimensions. The training part is jittered by all three global generators."""

    def __init__(self, samples: int, seed: int, jitter: bool) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.y = torch.arange(samples) % 3
        self.x = torch.randn(samples, 8, generator=generator) + F.one_hot(self.y, 8) * 3.0
        self.jitter = jitter

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.x[index]
        if self.jitter:
            x = x + torch.randn(8) * 0.1 + random.random() * 0.1 + np.random.rand() * 0.1
        return x.float(), self.y[index]


class BlobTask:
    def __init__(self, fault: str = "", samples: int = 120) -> None:
        self.fault, self.samples = fault, samples

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))

    def train_data(self) -> Blobs:
        return Blobs(self.samples, 1, jitter=True)

    def test_data(self) -> Blobs:
        return Blobs(90, 2, jitter=False)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rank = int(os.environ.get("RANK", "0"))
        if self.fault == "raises-on-rank-1" and rank == 1:
            raise KeyError("planted")
        if self.fault == "nan":
            return F.cross_entropy(outputs, targets) * math.nan
        return F.cross_entropy(outputs, targets)

    def metrics(self, outputs: dict[str, Any], targets: Any) -> dict[str, Any]:
        return {"top1": (outputs["output"].argmax(1) == targets).astype(float)}
