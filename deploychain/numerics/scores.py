"""Metrics of a task over one artefact's outputs, and the identity of the test data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import StageError

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Scores:
    """What a task's `metrics` said. None: it gave a value that is no finite number; a note says so."""

    metrics: Mapping[str, float | None] = field(default_factory=dict)
    per_sample: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_scores(raw: Any, samples: int, classes: Sequence[str] = ()) -> Scores:
    """Check what a task's `metrics` returned.

    Args:
        raw: name -> number, or name -> one score per sample.
        samples: how many samples were scored.
        classes: the class of each sample, or empty. The mean of the per-sample scores of each class is kept.

    Raises:
        StageError: it is no mapping, a value is neither a number nor a sequence of numbers, or a sequence has another
            length than there are samples.
    """
    if not isinstance(raw, Mapping) or not raw:
        raise StageError(
            f"metrics() returned {type(raw).__name__ if not isinstance(raw, Mapping) else 'no metric'}",
            where="task",
            remedy='return a dict: {"top1": 0.9}, or {"top1": one score per sample}',
        )
    metrics: dict[str, float | None] = {}
    per_sample: dict[str, tuple[float | None, ...]] = {}
    per_class: dict[str, dict[str, float | None]] = {}
    notes: list[str] = []
    for name, value in ((str(k), v) for k, v in raw.items()):
        array = _numbers(name, value)
        if array.ndim == 0:
            metrics[name] = _finite(float(array))
            if metrics[name] is None:
                notes.append(f"metric {name} is {float(array)}")
            continue
        if array.shape != (samples,):
            raise StageError(
                f"metric {name!r} has shape {list(array.shape)} for {samples} samples",
                where="task",
                remedy="return a number, or one score per sample",
            )
        per_sample[name] = tuple(_finite(float(v)) for v in array)
        bad = int(array.size - np.isfinite(array).sum())
        metrics[name] = float(array.mean()) if not bad else None
        if bad:
            notes.append(f"metric {name} is not finite for {bad} of {samples} samples, so its mean is unknown")
        if classes:
            labels = np.asarray(classes)
            means = {c: _finite(float(array[labels == c].mean())) for c in dict.fromkeys(classes)}
            per_class[name] = {c: means[c] for c in sorted(means, key=_natural)}
    if classes and not per_sample:
        notes.append("no metric is per sample, so none can be told per class")
    return Scores(metrics, per_sample, per_class, tuple(notes))


def read_classes(raw: Any, samples: int) -> tuple[str, ...]:
    """Check what a task's `classes` returned: one class index or name per sample.

    Raises:
        StageError: the number differs from that of the samples.
    """
    values = raw.tolist() if hasattr(raw, "tolist") else list(raw)
    if len(values) != samples or any(isinstance(v, (list, tuple, dict)) for v in values):
        raise StageError(
            f"classes() returned {len(values)} entries for {samples} samples",
            where="task",
            remedy="return one class index per sample",
        )
    return tuple(str(v) for v in values)


def data_sha256(inputs: Mapping[str, Array], targets: Any) -> str | None:
    """sha256 over the test inputs and targets as evaluated: names, types, shapes and bytes.

    None where the targets hold objects without a stable content (then runs cannot be shown to use equal data).
    """
    digest = hashlib.sha256()
    try:
        _feed(digest, dict(inputs))
        _feed(digest, targets)
    except TypeError:
        return None
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if hasattr(value, "detach"):  # a torch tensor, without importing torch
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        digest.update(f"array {value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)}".encode())
        for key in sorted(value, key=str):
            digest.update(str(key).encode() + b"\0")
            _feed(digest, value[key])
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
        digest.update(f"sequence {len(value)}".encode())
        for item in value:
            _feed(digest, item)
    elif value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        digest.update(f"{type(value).__name__} {value!r}\0".encode())
    else:
        raise TypeError(type(value).__name__)


def _numbers(name: str, value: Any) -> npt.NDArray[np.float64]:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise StageError(
            f"metric {name!r} is a {type(value).__name__}, expected a number or one number per sample",
            where="task",
        )
    return array.astype(np.float64)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _natural(text: str) -> tuple[int, float, str]:
    return (0, float(text), "") if text.lstrip("-").isdigit() else (1, 0.0, text)
