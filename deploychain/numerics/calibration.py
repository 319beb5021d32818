"""Symmetric INT8 ranges from a tensor's histogram, without training and without a second pass over the data."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from deploychain.numerics.range import TensorRange, bin_middles

Method = Literal["max", "percentile", "mse"]
METHODS: tuple[Method, ...] = ("max", "percentile", "mse")
LEVELS = 127  # symmetric, -127..127 used; -128 exists but has no positive twin


def amax_of(found: TensorRange, method: Method, percentile: float = 99.99) -> float:
    """The magnitude that code 127 stands for; 0 for an all-zero tensor.

    Args:
        method: ``max`` clips nothing; ``percentile`` clips what lies above that share of all elements; ``mse``
            takes the range with the least mean squared error, rounding and clipping together.
        percentile: 0..100.
    """
    if method == "max" or found.abs_max == 0.0:
        return found.abs_max
    if method == "percentile":
        # `TensorRange.percentile` counts non-zeros; the share here is of all elements, as calibrators count.
        non_zeros = found.count - found.zeros - found.non_finite
        above = found.count * (100.0 - percentile) / 100.0
        return found.percentile(max(0.0, 100.0 * (1 - above / max(non_zeros, 1)))) or found.abs_max
    counts = found.histogram.astype(np.float64)
    filled = np.flatnonzero(counts[1 : len(bin_middles())]) + 1
    middle, weight = np.minimum(bin_middles()[filled], found.abs_max), counts[filled]
    candidates = found.abs_max * np.geomspace(1.0, 1 / 64, 97)
    errors = [_squared_error(middle, weight, amax) for amax in candidates]
    return float(candidates[int(np.argmin(errors))])


def _squared_error(middle: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], amax: float) -> float:
    """Sum of squared errors when magnitudes are rounded to amax / 127 and clipped at amax."""
    step = amax / LEVELS
    rounding = np.minimum(middle**2, step**2 / 12)  # below half a step a value becomes zero
    clipping = (middle - amax) ** 2
    return float((weight * np.where(middle > amax, clipping, rounding)).sum())
