"""scikit-learn's digits (1,797 images of 8x8) with a small convolutional network: the whole chain in seconds."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

FOLD = 5  # every fifth image is for testing: 360 of 1,797


class Block(nn.Module):
    """Two convolutions with a skip connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + x)


class DigitsNet(nn.Module):
    """8x8 grey image -> 10 logits."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.block = Block(width)
        self.head = nn.Linear(4 * width, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.block(F.max_pool2d(self.stem(image), 2))
        return self.head(F.max_pool2d(x, 2).flatten(1))


class DigitsTask:
    def model(self) -> nn.Module:
        return DigitsNet()

    def train_data(self) -> TensorDataset:
        return self._data(test=False)

    def test_data(self) -> TensorDataset:
        return self._data(test=True)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets)

    def metrics(self, outputs: dict[str, np.ndarray], targets: np.ndarray) -> dict[str, np.ndarray]:
        # One 0 or 1 per image: the mean is the accuracy, and stages can be compared image by image.
        return {"top1": (outputs["output"].argmax(1) == targets).astype(float)}

    def classes(self, targets: np.ndarray) -> np.ndarray:
        return targets  # for accuracy per class

    def _data(self, test: bool) -> TensorDataset:
        digits = load_digits()
        chosen = (np.arange(len(digits.target)) % FOLD == 0) == test
        pixels = torch.from_numpy(digits.images[chosen].astype(np.float32))[:, None] / 8 - 1  # 0..16 -> -1..1
        return TensorDataset(pixels, torch.from_numpy(digits.target[chosen].astype(np.int64)))
