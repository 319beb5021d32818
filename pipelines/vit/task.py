"""Fashion-MNIST with a small vision transformer: the hard case for precision (softmax, LayerNorm, GELU)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

SUBSET = Path(__file__).parent.parent / "data" / "fashion-mnist.npz"
MEAN, STD = 0.286, 0.353  # of the training pixels, in units of 0..1


class Attention(nn.Module):
    """Multi-head self-attention over (batch, tokens, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # -1 stands for the batch, so that an exported graph takes any; tokens and width are fixed.
        tokens, width = x.shape[1], x.shape[2]
        parts = self.qkv(x).reshape(-1, tokens, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(-1, tokens, width))


class Layer(nn.Module):
    """Pre-norm transformer layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SmallViT(nn.Module):
    """28x28 grey image -> 49 patches of 4x4 -> 10 logits."""

    def __init__(self, width: int = 64, depth: int = 3, heads: int = 4, classes: int = 10) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.positions = nn.Parameter(torch.randn(1, 49, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(image).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.layers(tokens)).mean(1))


class VitTask:
    """The same images as ``pipelines/fashion``."""

    def model(self) -> nn.Module:
        return SmallViT()

    def train_data(self) -> TensorDataset:
        return self._data("train")

    def test_data(self) -> TensorDataset:
        return self._data("test")

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets)

    def metrics(self, outputs: dict[str, np.ndarray], targets: np.ndarray) -> dict[str, np.ndarray]:
        return {"top1": (outputs["output"].argmax(1) == targets).astype(float)}

    def classes(self, targets: np.ndarray) -> np.ndarray:
        return targets

    def _data(self, split: str) -> TensorDataset:
        with np.load(SUBSET) as arrays:
            images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
        pixels = torch.from_numpy(images.reshape(-1, 1, 28, 28).astype(np.float32) / 255)
        return TensorDataset((pixels - MEAN) / STD, torch.from_numpy(labels.astype(np.int64)))
