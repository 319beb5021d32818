"""Small torch models for the tests of QAT and export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset


class Block(nn.Module):
    """A residual block as torchvision writes it: in-place ReLU, ``out += identity``, optional arguments."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        identity = self.down(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if mask is not None:
            out = out * mask
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """(batch, 1, 8, 8) -> (batch, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.layer1 = nn.Sequential(Block(8, 8), Block(8, 16))
        self.head = nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.layer1(self.stem(image)).mean((2, 3)))


class UNet(nn.Module):
    """One concatenation of an encoder feature with an upsampled one, and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.mix = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        a = F.relu(self.first(image))
        b = F.relu(self.second(F.max_pool2d(a, 2)))
        return self.mix(torch.cat([a, self.up(b)], 1))


class Untraceable(nn.Module):
    """Control flow on values around an addition; the block inside is traceable."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.block = Block(8, 8)
        self.last = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.block(self.stem(image))
        if float(x.sum()) > 1e30:
            return x
        return x + self.last(x)


class Attention(nn.Module):
    """Pre-norm transformer layer with `nn.MultiheadAttention`."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, tokens: Tensor) -> Tensor:
        y = self.norm(tokens)
        tokens = tokens + self.attention(y, y, y, need_weights=False)[0]
        return tokens + self.mlp(self.norm(tokens))


def trained(model: nn.Module | Callable[[], nn.Module], *shape: int, seed: int = 0) -> nn.Module:
    """Give a model's BatchNorms statistics and weights of their own, so that folding has something to fold."""
    torch.manual_seed(seed)
    if not isinstance(model, nn.Module):
        model = model()
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.affine:
            nn.init.uniform_(module.weight, 0.5, 2.0)
            nn.init.uniform_(module.bias, -1.0, 1.0)
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(16, *shape) * 2 + 0.5)
    return model.eval()


class Task:
    """Blobs of two kinds on 8x8 images; learnt in a few steps."""

    def model(self) -> nn.Module:
        return ResNet()

    def train_data(self) -> TensorDataset:
        return self._data(256, 0)

    def test_data(self) -> TensorDataset:
        return self._data(64, 1)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs, targets)

    def metrics(self, outputs: dict[str, np.ndarray], targets: np.ndarray) -> dict[str, Any]:
        return {"top1": (outputs["output"].argmax(1) == targets).astype(float)}

    def _data(self, count: int, seed: int) -> TensorDataset:
        generator = torch.Generator().manual_seed(seed)
        targets = torch.randint(0, 2, (count,), generator=generator)
        images = torch.randn(count, 1, 8, 8, generator=generator) * 0.3
        images[:, :, :4] += targets[:, None, None, None]
        return TensorDataset(images, targets)
