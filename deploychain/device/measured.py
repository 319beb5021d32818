"""What both backends give back and how it is read: builds, times, and the batches that a profile allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import ArtifactError
from deploychain.records import Latency

Arrays = dict[str, npt.NDArray[Any]]
Shapes = Mapping[str, Sequence[int]]
OnProgress = Callable[[str, float, int], None]  # phase, elapsed seconds, memory in MiB
TIMES, PROFILE = "times.json", "profile.json"
NO_LAYERS = "no listing of layers was found: nothing is known of the built precisions"


@dataclass(frozen=True, slots=True)
class Built:
    """The outcome of one build."""

    built: bool
    reason: str
    remedy: str
    seconds: float
    peak_mib: int
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """Latency on one shape."""

    latency: Latency
    layers_timed: bool


def batch_limits(inputs: Arrays, profiles: Mapping[str, Shapes]) -> tuple[int, int]:
    """Smallest and largest batch that all profiles allow; a fixed model has one."""
    low, high = 1, 0
    for name, array in inputs.items():
        if name in profiles:
            low = max(low, int(profiles[name]["min"][0]))
            most = int(profiles[name]["max"][0])
        else:
            most = int(array.shape[0])
        high = most if not high else min(high, most)
    return low, max(high, low)


def forget_times(work: Path) -> None:
    """Remove the times of an earlier run: where this one fails, they must not be taken for its own."""
    for name in (TIMES, PROFILE):
        (work / name).unlink(missing_ok=True)


def read_times(path: Path) -> tuple[float, ...]:
    """GPU compute time of each inference, milliseconds, in the form of trtexec's ``--exportTimes``.

    Raises:
        ArtifactError: it is missing, cut or empty.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        times = tuple(float(row["computeMs"]) for row in rows)
    except OSError as error:
        raise ArtifactError(f"no times were written: {error.strerror}", where=str(path)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"the times cannot be read: {error}", where=str(path)) from None
    if not times:
        raise ArtifactError("no times were written", where=str(path))
    return times


def latency_of(
    times: Sequence[float], stage: str, device: str, *, clock: str, shapes: Shapes, warm_up_ms: int, backend: str
) -> Latency:
    """Percentiles, and how they were obtained. ``clock`` says what took the time."""
    size = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in shapes.items())
    how = (
        f"{clock} of {len(times)} inferences at {size or 'the model shape'}, {warm_up_ms} ms warm-up, "
        f"no transfers, no CUDA graph ({backend})"
    )
    values = np.asarray(times)
    # Five parts of the run in order: their medians show a clock that falls or a neighbour that came.
    parts = tuple(float(np.median(part)) for part in np.array_split(values, 5) if len(part))
    p50, p99 = (float(np.percentile(values, p)) for p in (50, 99))
    return Latency(stage, device, p50, p99, float(values.mean()), how=how, parts=parts)
