"""Activation ranges from data: a histogram of bounded size, and four ways to choose a range from it.

max         the largest magnitude seen
percentile  the magnitude that the given share of the values does not exceed
mse         the range with the least mean squared quantisation error
entropy     the range whose quantised distribution has the least Kullback-Leibler divergence from the observed one
            (S. Migacz, "8-bit Inference with TensorRT", GTC 2017)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from deploychain.errors import StageError

BINS = 2048
LEVELS = 128  # magnitudes of a symmetric INT8 value
ENTROPY_CLIPS = 0.01  # largest share of values that the entropy method may clip
_SMOOTH = 1e-4  # probability given to a bin that the quantised distribution lacks
_PIECE = 1 << 22  # values per histogram call: float32 counts stay exact

Counts = npt.NDArray[np.float64]


class Observer:
    """Histogram of magnitudes over [0, limit); the limit doubles, merging bins, when a larger value comes.

    Memory is 2048 counts however much data it sees; the bin width is at most 1/1024 of the largest value.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counts = np.zeros(BINS)
        self.limit = 0.0
        self.maximum = 0.0
        self.batch_maxima: list[float] = []

    def update(self, x: Tensor) -> None:
        """Add one batch.

        Raises:
            StageError: a value is NaN or infinite.
        """
        magnitudes = x.abs().float().flatten()
        largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
        if not math.isfinite(largest):
            raise StageError(
                "NaN or infinity in the activations while calibrating",
                where=self.name,
                remedy="check the FP32 weights and the calibration data, or exclude the module",
            )
        self.batch_maxima.append(largest)
        self.maximum = max(self.maximum, largest)
        if largest == 0.0:
            self.counts[0] += magnitudes.numel()
            return
        if self.limit == 0.0:
            # Zeros seen before the first positive value are in bin 0 already.
            self.limit = largest * (1 + 1e-6)
        while largest >= self.limit:
            merged = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.concatenate([merged, np.zeros(BINS // 2)])
            self.limit *= 2
        for start in range(0, magnitudes.numel(), _PIECE):
            piece = magnitudes[start : start + _PIECE]
            self.counts += torch.histc(piece, BINS, 0.0, self.limit).double().cpu().numpy()

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def clipped_share(self, amax: float) -> float:
        """Share of the observed values beyond a range; within a bin the values count as evenly spread."""
        if self.total == 0 or self.limit == 0 or amax >= self.maximum:
            return 0.0
        position = amax / (self.limit / BINS)
        whole = int(position)
        beyond = self.counts[whole + 1 :].sum() + self.counts[whole] * (1 - (position - whole))
        return float(beyond / self.total)

    def mean_batch_maximum(self) -> float:
        return float(np.mean(self.batch_maxima)) if self.batch_maxima else 0.0


def range_of(observer: Observer, method: str, percentile: float = 99.99) -> float:
    """The range that a method chooses.

    Args:
        observer: what calibration saw.
        method: max, percentile, mse or entropy.
        percentile: for percentile, in percent.

    Returns:
        The largest representable magnitude; 0 when only zeros were seen.

    Raises:
        StageError: nothing was seen.
    """
    if observer.total == 0:
        raise StageError(
            "no calibration data reached this quantiser",
            where=observer.name,
            remedy="exclude the module, or make calibration_data() run it",
        )
    if observer.maximum == 0.0:
        return 0.0
    width = observer.limit / BINS
    choose: Mapping[str, Callable[[Counts], float]] = {
        "max": lambda counts: observer.maximum / width,
        "percentile": lambda counts: _percentile(counts, percentile),
        "mse": _mse,
        "entropy": _entropy,
    }
    return min(choose[method](observer.counts) * width, observer.maximum)


def _percentile(counts: Counts, percentile: float) -> float:
    """Position (in bins) below which the share of values lies, interpolated within its bin."""
    wanted = counts.sum() * percentile / 100
    cumulative = counts.cumsum()
    index = int(np.searchsorted(cumulative, wanted))
    if index >= BINS:
        return float(BINS)
    before = cumulative[index] - counts[index]
    return index + float((wanted - before) / counts[index])


def _mse(counts: Counts) -> float:
    used = int(np.flatnonzero(counts)[-1]) + 1
    centres = np.arange(BINS) + 0.5
    best, chosen = math.inf, float(used)
    for edge in np.linspace(used * 0.05, used, 200):
        scale = edge / (LEVELS - 1)
        quantised = np.minimum(np.round(centres / scale), LEVELS - 1) * scale
        error = float(counts @ (quantised - centres) ** 2)
        if error < best:
            best, chosen = error, float(edge)
    return chosen


def _entropy(counts: Counts) -> float:
    counts = counts.copy()
    counts[0] = counts[1]  # zeros are exact at any scale and would drown the rest
    if counts.sum() == 0:
        return float(BINS)
    used = int(np.flatnonzero(counts)[-1]) + 1
    # Where values are sparse (few grey levels) a range that clips nearly all of them has no divergence either.
    within = int(np.searchsorted(counts.cumsum(), counts.sum() * (1 - ENTROPY_CLIPS))) + 1
    best, chosen = math.inf, float(used)
    for edge in range(max(min(LEVELS, used), within), used + 1, 8):
        observed = counts[:edge].copy()
        outliers = counts[edge:].sum()
        level = np.minimum(np.arange(edge) * LEVELS // edge, LEVELS - 1)
        filled = observed > 0
        mass = np.bincount(level, weights=observed, minlength=LEVELS)
        members = np.bincount(level, weights=filled, minlength=LEVELS)
        quantised = np.where(filled, (mass / np.maximum(members, 1))[level], 0.0)
        observed[-1] += outliers
        p, q = observed / observed.sum(), quantised / quantised.sum()
        inside = p > 0
        q = np.where(inside & (q == 0), _SMOOTH, q)  # clipped values in an empty last bin: finite, not infinite
        divergence = float(np.sum(p[inside] * np.log(p[inside] / (q / q.sum())[inside])))
        if divergence < best:
            best, chosen = divergence, float(edge)
    return chosen
