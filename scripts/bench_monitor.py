"""What `deploychain.monitor` costs on an NVIDIA GPU: ResNet-50, FP16 autocast, GradScaler, blocks with and without.

    PYTHONPATH=. python scripts/bench_monitor.py [--batch 64] [--every 50] [--rounds 6] [--out FILE]

Prints one JSON document. Needs torch and an NVIDIA GPU; ResNet-50 is written out here, so no torchvision.
Blocks alternate off/on/on/off, so that clock and temperature drift cancel. A block is `--steps` steps (a multiple of
`every`), timed by CUDA events at its ends, so the cost of the sampled steps is in it at its true share. On the steps
between, `monitor.step` runs under `torch.cuda.set_sync_debug_mode("error")`: a synchronisation would raise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * 4
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down: nn.Module | None = None
        if stride != 1 or inside != out:
            self.down = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = x if self.down is None else self.down(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + skip)


def resnet50(classes: int = 1000) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            layers.append(Bottleneck(inside, width, stride if index == 0 else 1))
            inside = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


class Loop:
    """One training step on synthetic data that lives on the GPU: nothing but the step itself is timed."""

    def __init__(self, batch: int, size: int, device: str, fused: bool) -> None:
        torch.manual_seed(0)
        self.device = device
        self.model = resnet50().to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, fused=fused or None)
        self.scaler = torch.amp.GradScaler(device, init_scale=2.0**12)
        self.x = torch.randn(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
        self.y = torch.randint(0, 1000, (batch,), device=device)

    def train_step(self) -> torch.Tensor:
        with torch.autocast(self.device, dtype=torch.float16):
            loss = nn.functional.cross_entropy(self.model(self.x), self.y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss


def block(loop: Loop, steps: int, every: int, watched: bool, check: bool) -> tuple[float, list[float]]:
    """(milliseconds per step, milliseconds of every step) of one block."""
    from deploychain.backends.amp_monitor import monitor

    cuda = loop.device == "cuda"
    watch: Any = monitor(loop.model, loop.optimizer, loop.scaler, every=every) if watched else nullcontext()
    marks = [torch.cuda.Event(enable_timing=True) if cuda else None for _ in range(steps + 1)]
    clock = [0.0] * (steps + 1)
    with watch as m:
        if cuda:
            torch.cuda.synchronize()
        for index in range(steps + 1):
            if cuda:
                marks[index].record()  # type: ignore[union-attr]
            clock[index] = time.perf_counter()
            if index == steps:
                break
            loss = loop.train_step()
            if m is not None:
                sampled = index % every == 0
                if check and cuda and not sampled:
                    torch.cuda.set_sync_debug_mode("error")
                m.step(loss)
                if check and cuda:
                    torch.cuda.set_sync_debug_mode("default")
            loop.optimizer.zero_grad()
        if cuda:
            torch.cuda.synchronize()
    if cuda:
        each = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]  # type: ignore[union-attr]  # noqa: B905, RUF007
    else:
        each = [(b - a) * 1e3 for a, b in zip(clock, clock[1:])]  # noqa: B905, RUF007
    return sum(each) / steps, each


def measure(args: argparse.Namespace) -> dict[str, Any]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not args.cpu:
        sys.exit("no NVIDIA GPU: the overhead cannot be measured here (--cpu runs the script for a smoke test)")
    loop = Loop(args.batch, args.size, device, args.fused)
    steps = args.steps or 2 * args.every
    torch.backends.cudnn.benchmark = True
    for _ in range(args.warmup):
        loop.train_step()
        loop.optimizer.zero_grad()
    block(loop, min(steps, args.every + 2), args.every, True, check=True)  # also the check for synchronisation
    ratios: list[float] = []
    on: list[float] = []
    off: list[float] = []
    on_steps: list[float] = []
    off_steps: list[float] = []
    sampled: list[float] = []
    for index in range(args.rounds):
        pair: dict[bool, float] = {}
        for watched in (False, True) if index % 2 == 0 else (True, False):
            pair[watched], each = block(loop, steps, args.every, watched, check=False)
            if watched:
                sampled += each[:: args.every]
                on_steps += [t for i, t in enumerate(each) if i % args.every]
            else:
                off_steps += each
        on.append(pair[True])
        off.append(pair[False])
        ratios.append(100 * (pair[True] / pair[False] - 1))
    return {
        "schema": "deploychain.bench.monitor/1",
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "model": "ResNet-50",
        "batch": args.batch,
        "image": args.size,
        "optimizer": "SGD fused" if args.fused else "SGD",
        "every": args.every,
        "steps_per_block": steps,
        "rounds": args.rounds,
        "block_mean_step_ms": {"off": statistics.median(off), "on": statistics.median(on)},
        "median_step_ms": {
            "off": statistics.median(off_steps),
            "on_between_samples": statistics.median(on_steps) if on_steps else None,
            "on_sampled": statistics.median(sampled),
        },
        "overhead_percent": statistics.median(ratios),
        "overhead_percent_rounds": ratios,
        "synchronisation_between_samples": "none (checked with set_sync_debug_mode)"
        if device == "cuda"
        else "not checked",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--steps", type=int, default=0, help="steps per block; default 2 * every")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--fused", action="store_true", help="fused SGD: no synchronisation in scaler.step either")
    parser.add_argument("--cpu", action="store_true", help="smoke test without a GPU")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    text = json.dumps(measure(args), indent=2)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
