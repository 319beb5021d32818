"""Clothes on a conveyor: a small detector on images composited from real ones, with exact boxes.

Fashion-MNIST items lie on photographed textures. The neck mixes nearest and bilinear Resize with Concat, and aligns
its features to the fine ones by a learned flow and GridSample, on a map as wide as the image.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

DATA = Path(__file__).parent.parent / "data"
HEIGHT, WIDTH = 48, 320
CLASSES = 10
STRIDE = 4  # pixels per cell of the output map
MOST = 6  # items per image
KEPT = 30  # detections per image that count


def block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Align(nn.Module):
    """Move coarse features to where the fine ones are: a flow is predicted from both and followed by GridSample."""

    def __init__(self, fine: int, coarse: int) -> None:
        super().__init__()
        self.flow = nn.Conv2d(fine + coarse, 2, 3, padding=1)
        nn.init.zeros_(self.flow.weight)
        nn.init.zeros_(self.flow.bias)

    def forward(self, fine: torch.Tensor, coarse: torch.Tensor) -> torch.Tensor:
        height, width = coarse.shape[2], coarse.shape[3]
        # Pixel centres in GridSample's units of -1..1; they follow the size of the map.
        x = (2 * torch.arange(width, device=coarse.device).float() + 1) / width - 1
        y = (2 * torch.arange(height, device=coarse.device).float() + 1) / height - 1
        base = torch.stack([x.expand(height, width), y[:, None].expand(height, width)], -1)
        moved = torch.tanh(self.flow(torch.cat([fine, coarse], 1))) * 0.05
        return F.grid_sample(coarse, base + moved.permute(0, 2, 3, 1), align_corners=False, padding_mode="border")


class Detector(nn.Module):
    """Grey image (any size in multiples of 8) -> class logits and box edges on a map of one cell per 4 pixels."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        w = width
        self.stem = block(1, w)
        self.down2, self.down4, self.down8 = block(w, 2 * w, 2), block(2 * w, 4 * w, 2), block(4 * w, 6 * w, 2)
        self.deep = block(6 * w, 6 * w)
        self.lateral = nn.Conv2d(6 * w, 4 * w, 1)
        self.merge = block(8 * w, 4 * w)
        self.reduce = nn.Conv2d(4 * w, w, 1)
        self.align = Align(w, w)
        self.fine = nn.Sequential(block(2 * w, 2 * w, 2), block(2 * w, 4 * w, 2))
        self.head = block(8 * w, 6 * w)
        self.classes = nn.Conv2d(6 * w, CLASSES, 1)
        self.edges = nn.Conv2d(6 * w, 4, 1)
        nn.init.constant_(self.classes.bias, -4.0)  # few cells hold an item

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        at1 = self.stem(image)
        at4 = self.down4(self.down2(at1))
        at8 = self.deep(self.down8(at4))
        near = F.interpolate(self.lateral(at8), scale_factor=2.0, mode="nearest")
        merged = self.merge(torch.cat([near, at4], 1))
        smooth = F.interpolate(self.reduce(merged), scale_factor=4.0, mode="bilinear", align_corners=False)
        aligned = self.align(at1, smooth)
        detail = self.fine(torch.cat([at1, aligned], 1))
        features = self.head(torch.cat([merged, detail], 1))
        return {"scores": self.classes(features), "edges": F.softplus(self.edges(features))}


class DetectorTask:
    """``images`` to train on and ``tests`` to test; boxes are x1, y1, x2, y2 in pixels, label -1 means none."""

    lower_is_better: tuple[str, ...] = ()

    def __init__(self, images: int = 800, tests: int = 200) -> None:
        self.images, self.tests = images, tests

    def model(self) -> nn.Module:
        return Detector()

    def train_data(self) -> TensorDataset:
        return composite("train", self.images, seed=1)

    def test_data(self) -> TensorDataset:
        return composite("test", self.tests, seed=2)

    def loss(self, outputs: dict[str, torch.Tensor], targets: dict[str, torch.Tensor]) -> torch.Tensor:
        """Focal loss on the class of each cell (Lin et al., 2017) and L1 on the edges of the cells inside an item."""
        scores, edges = outputs["scores"].float(), outputs["edges"].float()
        label, wanted = assign(targets["boxes"], targets["labels"], scores.shape[2:])
        inside = label >= 0
        truth = F.one_hot(label.clamp(min=0), CLASSES).permute(0, 3, 1, 2).float() * inside[:, None]
        each = F.binary_cross_entropy_with_logits(scores, truth, reduction="none")
        probability = torch.sigmoid(scores)
        wrong = truth * (1 - probability) + (1 - truth) * probability
        weight = torch.where(truth > 0, 0.5, 0.25) * wrong**2
        count = inside.sum().clamp(min=1)
        distance = (F.smooth_l1_loss(edges, wanted, reduction="none").sum(1) * inside).sum() / count
        return (weight * each).sum() / count + 0.5 * distance

    def metrics(self, outputs: dict[str, np.ndarray], targets: dict[str, np.ndarray]) -> dict[str, float]:
        """COCO's mAP (IoU 0.50 to 0.95) and mAP at 0.50, by pycocotools."""
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth: dict[str, Any] = {
            "images": [{"id": i} for i in range(len(targets["boxes"]))],
            "categories": [{"id": c} for c in range(CLASSES)],
            "annotations": [],
        }
        for image, (boxes, labels) in enumerate(zip(targets["boxes"], targets["labels"], strict=True)):
            for box, label in zip(boxes, labels, strict=True):
                if label >= 0:
                    entry = {"id": len(truth["annotations"]) + 1, "image_id": image, "category_id": int(label)}
                    size = [float(box[2] - box[0]), float(box[3] - box[1])]
                    entry |= {"bbox": [float(box[0]), float(box[1]), *size], "area": size[0] * size[1], "iscrowd": 0}
                    truth["annotations"].append(entry)
        found = [
            {"image_id": i, "category_id": int(c), "score": float(s), "bbox": [x1, y1, x2 - x1, y2 - y1]}
            for i, detections in enumerate(detect(outputs["scores"], outputs["edges"]))
            for c, s, x1, y1, x2, y2 in detections
        ]
        if not found:
            return {"map": 0.0, "map50": 0.0}
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints its progress
            known = COCO()
            known.dataset = truth
            known.createIndex()
            evaluation = COCOeval(known, known.loadRes(found), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return {"map": float(evaluation.stats[0]), "map50": float(evaluation.stats[1])}


def composite(split: str, count: int, seed: int) -> TensorDataset:
    """Images and exact boxes, the same for the same seed."""
    random = np.random.default_rng(seed)
    with np.load(DATA / "fashion-mnist.npz") as stored, np.load(DATA / "textures.npz") as backgrounds:
        items, kinds = stored[f"{split}_images"], stored[f"{split}_labels"]
        textures = [backgrounds[name] for name in backgrounds.files]
    images = np.zeros((count, 1, HEIGHT, WIDTH), np.float32)
    boxes = np.zeros((count, MOST, 4), np.float32)
    labels = np.full((count, MOST), -1, np.int64)
    # Training and test images never share a piece of a texture.
    first, last = (0, 160 - HEIGHT) if split == "train" else (160, 256 - HEIGHT)
    for index in range(count):
        texture = textures[random.integers(len(textures))]
        top, left = random.integers(first, last + 1), random.integers(0, texture.shape[1] - WIDTH + 1)
        canvas = texture[top : top + HEIGHT, left : left + WIDTH].astype(np.float32) / 255 * 0.7
        place = 2
        for slot in range(MOST):
            place += int(random.integers(0, 30))
            scale = int(random.integers(26, 41))
            if place + scale > WIDTH - 2:
                break
            item = int(random.integers(len(items)))
            picture = _resized(items[item].astype(np.float32) / 255, scale)
            y = int(random.integers(2, HEIGHT - scale - 1))
            cover = (picture > 0.05).astype(np.float32)
            area = canvas[y : y + scale, place : place + scale]
            area[...] = area * (1 - cover) + picture * cover
            rows, columns = np.flatnonzero(cover.any(1)), np.flatnonzero(cover.any(0))
            boxes[index, slot] = (
                place + columns[0],
                y + rows[0],
                place + columns[-1] + 1,
                y + rows[-1] + 1,
            )
            labels[index, slot] = kinds[item]
            place += scale
        images[index, 0] = canvas
    targets = {"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels)}
    return Pairs(torch.from_numpy((images - 0.3) / 0.25), targets)


class Pairs(TensorDataset):
    """(image, {boxes, labels})."""

    def __init__(self, images: torch.Tensor, targets: dict[str, torch.Tensor]) -> None:
        super().__init__(images)
        self.targets = targets

    def __getitem__(self, index: int) -> Any:
        return self.tensors[0][index], {key: value[index] for key, value in self.targets.items()}


def _resized(picture: np.ndarray, size: int) -> np.ndarray:
    """Bilinear, by torch."""
    tensor = torch.from_numpy(picture)[None, None]
    return F.interpolate(tensor, size=(size, size), mode="bilinear", align_corners=False)[0, 0].numpy()


def assign(boxes: torch.Tensor, labels: torch.Tensor, size: torch.Size) -> tuple[torch.Tensor, torch.Tensor]:
    """Per cell: the label of the item whose middle half it lies in (-1: none), and its distances to the edges.

    Returns:
        label of shape (n, h, w), int64; distances (n, 4, h, w) to left, top, right, bottom in cells.
    """
    height, width = size
    y, x = torch.meshgrid(
        (torch.arange(height, device=boxes.device) + 0.5) * STRIDE,
        (torch.arange(width, device=boxes.device) + 0.5) * STRIDE,
        indexing="ij",
    )
    x1, y1, x2, y2 = (boxes[..., i, None, None] for i in range(4))
    distances = torch.stack([x - x1, y - y1, x2 - x, y2 - y], 2) / STRIDE  # (n, items, 4, h, w)
    middle = (x - (x1 + x2) / 2).abs() * 4 < (x2 - x1)
    middle &= (y - (y1 + y2) / 2).abs() * 4 < (y2 - y1)
    middle &= (labels >= 0)[..., None, None]
    which = middle.float().argmax(1)  # items do not overlap
    any_item = middle.any(1)
    label = torch.where(any_item, labels.gather(1, which.flatten(1)).view_as(which), -1)
    index = which[:, None, None].expand(-1, 1, 4, -1, -1)
    return label, distances.gather(1, index)[:, 0]


def detect(scores: np.ndarray, edges: np.ndarray) -> list[list[tuple[float, ...]]]:
    """Per image: (class, score, x1, y1, x2, y2), by greedy suppression per class (IoU over 0.5)."""
    found = []
    for logits, sides in zip(scores.astype(np.float64), edges.astype(np.float64), strict=True):
        probability = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
        kinds, rows, columns = np.unravel_index(np.argsort(probability, axis=None)[::-1][: 8 * KEPT], probability.shape)
        chosen: list[tuple[float, ...]] = []
        for kind, row, column in zip(kinds, rows, columns, strict=True):
            x, y = (column + 0.5) * STRIDE, (row + 0.5) * STRIDE
            left, top, right, bottom = sides[:, row, column] * STRIDE
            box = (float(kind), float(probability[kind, row, column]), x - left, y - top, x + right, y + bottom)
            if all(other[0] != box[0] or _overlap(other, box) < 0.5 for other in chosen):
                chosen.append(box)
            if len(chosen) == KEPT:
                break
        found.append(chosen)
    return found


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    width = min(a[4], b[4]) - max(a[2], b[2])
    height = min(a[5], b[5]) - max(a[3], b[3])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[4] - a[2]) * (a[5] - a[3]) + (b[4] - b[2]) * (b[5] - b[3]) - both)
