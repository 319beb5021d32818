"""One number for what a precision costs: points of a metric where there are targets, else the output error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.numerics.errors import compare_outputs

Arrays = Mapping[str, npt.NDArray[Any]]
Metric = Callable[[Arrays], float]  # outputs -> value; higher is better


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Measures outputs against those of FP32.

    With a metric: the loss in points (100 times the difference; negative when the metric rose). Without:
    ``100 * ||out - ref|| / ||ref||`` of the worst output, percent. Infinite where an output is not finite that FP32
    has finite.
    """

    reference: Arrays
    metric: Metric | None = None
    name: str = ""

    @property
    def of(self) -> str:
        return f"{self.name}, points" if self.metric is not None else "output error, %"

    def drop(self, outputs: Arrays) -> float:
        if self.metric is not None:
            if self._broken(outputs):
                return math.inf
            return 100.0 * (self.metric(self.reference) - self.metric(outputs))
        return 100.0 * self.error(outputs)

    def error(self, outputs: Arrays) -> float:
        """Relative output error, whatever the metric is."""
        return relative_error(outputs, self.reference)

    def _broken(self, outputs: Arrays) -> bool:
        return any(
            not np.isfinite(np.asarray(outputs[n])).all() and np.isfinite(np.asarray(ref)).all()
            for n, ref in self.reference.items()
            if np.asarray(ref).dtype.kind == "f"
        )


def relative_error(outputs: Arrays, reference: Arrays) -> float:
    """``||out - ref|| / ||ref||`` of the worst float output; inf where it cannot be told (non-finite values)."""
    floats = {n: r for n, r in reference.items() if np.asarray(r).dtype.kind == "f"}
    if not floats:  # integer outputs only (class indices): share of unequal values
        unequal = [float(np.mean(outputs[n] != r)) for n, r in reference.items()]
        return max(unequal, default=0.0)
    found = compare_outputs({n: outputs[n] for n in floats}, floats, worst=0).per_output
    errors = [stats.get("relative_error") for stats in found.values()]
    return max((math.inf if e is None else e) for e in errors)


def top1(targets: npt.NDArray[Any]) -> Metric | None:
    """Top-1 accuracy against class indices, over the first output that has a score per class; None if none fits."""
    if targets.ndim != 1 or targets.dtype.kind not in "iu":
        return None

    def measure(outputs: Arrays) -> float:
        for array in outputs.values():
            if array.ndim == 2 and len(array) == len(targets) and array.shape[1] > int(targets.max()):
                return float((array.argmax(1) == targets).mean())
        return math.nan

    return measure
