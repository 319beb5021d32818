"""Fashion-MNIST with a small residual network: everything that the chain needs to know, in plain PyTorch."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

SUBSET = Path(__file__).parent.parent / "data" / "fashion-mnist.npz"
MEAN, STD = 0.286, 0.353  # of the training pixels, in units of 0..1


class Block(nn.Module):
    """Two 3x3 convolutions and a skip connection."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


class SmallResNet(nn.Module):
    """28x28 grey image -> 10 logits; 31 thousand parameters."""

    def __init__(self, width: int = 8, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, 2, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(
            Block(width, 2 * width), Block(2 * width, 2 * width), Block(2 * width, 4 * width, 2)
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.blocks(self.stem(image))
        return self.head(features.mean((2, 3)))


class FashionTask:
    """10 kinds of clothes; 6,000 training and 1,000 test images.

    ``folder`` may name a folder of the four ``*-ubyte.gz`` files, to use all 70,000 images instead.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder

    def model(self) -> nn.Module:
        return SmallResNet()

    def train_data(self) -> TensorDataset:
        return self._data("train")

    def test_data(self) -> TensorDataset:
        return self._data("test")

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets)

    def metrics(self, outputs: dict[str, np.ndarray], targets: np.ndarray) -> dict[str, np.ndarray]:
        # One 0 or 1 per image: the mean is the accuracy, and stages can be compared image by image.
        return {"top1": (outputs["output"].argmax(1) == targets).astype(float)}

    def classes(self, targets: np.ndarray) -> np.ndarray:
        return targets  # for accuracy per class

    def _data(self, split: str) -> TensorDataset:
        if self.folder is None:
            with np.load(SUBSET) as arrays:
                images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
        else:
            name = "train" if split == "train" else "t10k"
            images = self._bytes(f"{name}-images-idx3-ubyte.gz", offset=16)
            labels = self._bytes(f"{name}-labels-idx1-ubyte.gz", offset=8)
        pixels = torch.from_numpy(images.reshape(-1, 1, 28, 28).astype(np.float32) / 255)
        return TensorDataset((pixels - MEAN) / STD, torch.from_numpy(labels.astype(np.int64)))

    def _bytes(self, name: str, offset: int) -> np.ndarray:
        return np.frombuffer(gzip.decompress((Path(self.folder) / name).read_bytes()), np.uint8, offset=offset)
