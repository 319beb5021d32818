"""What the training loop is told, and what it tells: plan, and log of every epoch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from deploychain.backends.torch_device import Mode


@dataclass(frozen=True)
class FitPlan:
    """How to train. The settings of the same names in `settings.TrainSettings`, with precision and device resolved."""

    epochs: int
    batch_size: int
    precision: Mode = "fp32"
    mixed_epochs: int | None = None  # the last N epochs; None: all
    optimizer: Literal["sgd", "adamw"] = "adamw"
    lr: float = 2e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: Literal["cosine", "constant"] = "cosine"
    warmup_epochs: float = 0.0
    accumulate: int = 1
    clip_norm: float | None = None
    ema: float | None = None
    init_scale: float = 65536.0
    growth_interval: int = 2000
    deterministic: bool = False
    channels_last: bool = False
    compile: bool = False
    workers: int = 0
    threads: int | None = None  # CPU threads; None: torch's own choice
    seed: int = 0
    evaluate: bool = True  # the task's metrics after every epoch

    @classmethod
    def of(cls, settings: Any, **more: Any) -> FitPlan:
        """The fields that a settings object has under the same names, and ``more``, which wins."""
        known = {name: getattr(settings, name) for name in cls.__dataclass_fields__ if hasattr(settings, name)}
        return cls(**{**known, **more})

    def mode(self, epoch: int) -> Mode:
        """Precision of one epoch, counted from 0."""
        if self.mixed_epochs is not None and epoch < self.epochs - self.mixed_epochs:
            return "fp32"
        return self.precision


@dataclass(frozen=True)
class EpochLog:
    """One line of the training log."""

    epoch: int  # from 1
    precision: Mode
    loss: float
    lr: float
    steps: int  # optimizer steps that were applied
    skipped_steps: int
    scale: float | None  # loss scale at the end; None without a scaler
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EpochTime:
    """How long an epoch took. Not part of the log, and so of no checkpoint: equal trainings have equal bytes."""

    epoch: int  # from 1
    seconds: float  # training, without evaluation
    images_per_second: float  # all processes together


@dataclass
class TrainLog:
    """Everything that the training has to tell about what was trained."""

    epochs: list[EpochLog] = field(default_factory=list)
    scale_history: list[tuple[int, float]] = field(default_factory=list)  # (step, new scale), changes only
    skipped: list[int] = field(default_factory=list)  # optimizer steps whose gradients were not finite
    step: int = 0  # optimizer steps so far, skipped ones included
    notes: list[str] = field(default_factory=list)

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def restore(cls, text: str) -> TrainLog:
        raw = json.loads(text)
        known = EpochLog.__dataclass_fields__  # an interrupted training may be of an earlier release
        raw["epochs"] = [EpochLog(**{k: v for k, v in e.items() if k in known}) for e in raw["epochs"]]
        raw["scale_history"] = [(int(s), float(v)) for s, v in raw["scale_history"]]
        return cls(**raw)
