"""The runtime monitor inside the training loop, kept from ever stopping it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from deploychain.backends.torch_device import Mode


class Observer:
    """Runs `amp_monitor.monitor` over a training, one segment per precision and per start of the process.

    Segments are files of their own in ``folder``, named after their first epoch: a training that was interrupted
    keeps what was seen before. An error of the monitor is told once and ends the watching, not the training.
    """

    def __init__(self, folder: Path, every: int, note: Callable[[str], None]) -> None:
        self.folder, self.every, self.note = folder, every, note
        self._monitor: Any = None
        self._mode: Mode | None = None
        self.summaries: list[dict[str, Any]] = []
        self.failed = False

    def begin_epoch(self, epoch: int, mode: Mode, model: nn.Module, optimizer: Any, scaler: Any) -> None:
        if self.failed or (self._monitor is not None and mode == self._mode):
            return
        self.close()
        try:
            from deploychain.backends.amp_monitor import monitor

            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{epoch:05d}.jsonl"
            active = scaler if scaler.is_enabled() else None
            self._monitor = monitor(model, optimizer, active, every=self.every, path=path, tensorboard=False)
            self._mode = mode
        except Exception as error:
            self._fail(error)

    def step(self, loss: torch.Tensor) -> None:
        if self._monitor is None:
            return
        try:
            self._monitor.step(loss)
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """End the segment in hand."""
        if self._monitor is None:
            return
        monitor, self._monitor = self._monitor, None
        try:
            monitor.close()
            self.summaries.append(monitor.summary())
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        monitor, self._monitor, self.failed = self._monitor, None, True
        self.note(f"the monitor stopped ({type(error).__name__}: {error}); training goes on without it")
        try:
            if monitor is not None:
                monitor.close()  # takes its hooks out
        except Exception as second:
            self.note(f"the monitor did not close: {second}")

    def findings(self) -> list[dict[str, Any]]:
        """What the monitor found in this process, each finding once."""
        found = {(f["rule"], f["where"]): f for s in self.summaries for f in s.get("findings", [])}
        return list(found.values())

    def publish(self, path: Path) -> bool:
        """Join all segments to one JSON-lines file; False when there are none."""
        segments = sorted(self.folder.glob("*.jsonl"))
        if not segments:
            return False
        with path.open("wb") as out:
            for segment in segments:
                out.write(json.dumps({"type": "segment", "first_epoch": int(segment.stem[:5]) + 1}).encode() + b"\n")
                with segment.open("rb") as stream:
                    shutil.copyfileobj(stream, out)
        return True

    def forget(self) -> None:
        """Remove what an abandoned training left."""
        shutil.rmtree(self.folder, ignore_errors=True)
