"""Ranges of tensors against what FP16 can hold, gathered in one pass over any number of batches.

A collector keeps one histogram of 4096 counts per tensor (16 KiB as int32, 32 KiB as int64): the bin of a value is
the upper 12 bits of its FP32 magnitude, that is the exponent and 4 mantissa bits. No range has to be known
beforehand, percentiles are exact to 1/16 of an octave, and every FP16 threshold that is a power of two falls on a
bin border, so that the shares are exact counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FP16_MAX = 65504.0
FP16_MIN_NORMAL = 2.0**-14  # 6.1e-5; below it FP16 is subnormal: fixed spacing 2^-24
FP16_TO_ZERO = 2.0**-25  # values up to this round to zero (ties to even)

BINS = 4096
_SHIFT = 19  # 31 magnitude bits - 19 = 8 exponent bits + 4 mantissa bits
_INF_BIN = 0x7F800000 >> _SHIFT
_MAX_BITS = int(np.float32(FP16_MAX).view(np.uint32))
_ZERO_BITS = int(np.float32(FP16_TO_ZERO).view(np.uint32))
_NORMAL_BIN = int(np.float32(FP16_MIN_NORMAL).view(np.uint32)) >> _SHIFT
_ZERO_BIN = _ZERO_BITS >> _SHIFT
_MAX_BIN = _MAX_BITS >> _SHIFT
_CHUNK = 1 << 18  # elements per step: temporaries stay in the cache, memory stays bounded

# Lower border of each finite bin and, last, infinity's stand-in 2^128; and the middles.
_EDGES = np.append((np.arange(_INF_BIN, dtype=np.uint32) << np.uint32(_SHIFT)).view(np.float32).astype(float), 2.0**128)
_MIDDLES: npt.NDArray[np.float64] = (_EDGES[:-1] + _EDGES[1:]) / 2


def bin_middles() -> npt.NDArray[np.float64]:
    """The magnitude in the middle of each finite bin of a histogram."""
    return _MIDDLES


@dataclass(frozen=True, slots=True)
class TensorRange:
    """What was seen of one tensor. Shares are of all elements, except where it says "of the non-zeros"."""

    name: str
    count: int
    zeros: int
    non_finite: int  # NaN and inf together
    nans: int
    positive_inf: int
    minimum: float  # of the finite values; 0 when there are none
    maximum: float
    abs_max: float
    abs_min: float  # smallest non-zero magnitude; 0 when all are zero
    overflow_share: float  # above 65504
    underflow_share: float  # of the non-zeros: at most 2^-25, which FP16 rounds to zero
    subnormal_share: float  # of the non-zeros: between 2^-25 and 2^-14, with less than 11 significant bits
    shape: tuple[int, ...] = ()  # largest extent seen of each axis
    histogram: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64), repr=False)

    def percentile(self, share: float) -> float:
        """The magnitude below which ``share`` (0..100) of the non-zero finite values lie; 0 when there are none.

        Interpolated within the bin, so right to about 1/16 of an octave.
        """
        counts = self.histogram[1:_INF_BIN]
        total = int(counts.sum())
        if total == 0:
            return 0.0
        target = total * share / 100.0
        cumulated = np.cumsum(counts)
        index = min(int(np.searchsorted(cumulated, target)), len(counts) - 1)
        before = float(cumulated[index - 1]) if index else 0.0
        inside = (target - before) / max(float(counts[index]), 1.0)
        low, high = _EDGES[index + 1], _EDGES[index + 2]
        return float(min(max(low + (high - low) * min(max(inside, 0.0), 1.0), self.abs_min), self.abs_max))

    @property
    def storage_snr_db(self) -> float:
        """Signal over rounding noise, in dB, if the tensor were stored in FP16 and nothing else changed.

        Uniform rounding error is assumed: variance spacing^2 / 12, with the spacing 2^(e-10) of a normal FP16 number
        and 2^-24 below 2^-14; what rounds to zero is lost whole, what overflows makes the ratio -inf. About 74 dB
        for values in the normal range; inf for an all-zero tensor.
        """
        if self.overflow_share > 0 or self.non_finite:
            return -math.inf
        counts = self.histogram[1:_INF_BIN].astype(np.float64)
        middle = _MIDDLES[1:_INF_BIN]
        signal = float((counts * middle**2).sum())
        if signal == 0.0:
            return math.inf
        spacing = np.where(middle < FP16_MIN_NORMAL, 2.0**-24, 2.0 ** (np.floor(np.log2(middle)) - 10))
        noise = np.where(middle <= FP16_TO_ZERO, middle**2, spacing**2 / 12)
        return 10 * math.log10(signal / float((counts * noise).sum()))


class RangeCollector:
    """Gathers a `TensorRange` from batches."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._histogram = np.zeros(BINS, np.int64)
        self._minimum = math.inf
        self._maximum = -math.inf
        self._abs_min = math.inf
        self._over = self._at_zero = self._nans = self._positive_inf = 0
        self._shape: tuple[int, ...] = ()

    def update(self, values: npt.NDArray[np.floating]) -> None:
        """Count a batch of any shape; float16 and float64 are converted to float32."""
        if self._shape and len(self._shape) == values.ndim:
            self._shape = tuple(max(a, b) for a, b in zip(self._shape, values.shape, strict=True))
        else:
            self._shape = tuple(values.shape)
        flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            self._chunk(flat[start : start + _CHUNK])

    def _chunk(self, values: npt.NDArray[np.float32]) -> None:
        bits = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
        counts = np.bincount(bits >> np.uint32(_SHIFT), minlength=BINS)
        self._histogram += counts
        if counts[_INF_BIN:].any():
            self._nans += int(np.isnan(values).sum())
            self._positive_inf += int(np.isposinf(values).sum())
            values = values[np.isfinite(values)]
        if values.size:
            self._minimum = min(self._minimum, float(values.min()))
            self._maximum = max(self._maximum, float(values.max()))
        if counts[_MAX_BIN]:
            self._over += int(np.count_nonzero((bits > _MAX_BITS) & (bits >> np.uint32(_SHIFT) == _MAX_BIN)))
        if counts[_ZERO_BIN]:
            self._at_zero += int(np.count_nonzero(bits == _ZERO_BITS))
        # The exact smallest magnitude is looked for only where the histogram says that there may be a smaller one.
        lowest = int(np.argmax(counts[1:_INF_BIN] > 0)) + 1
        if counts[lowest] and _EDGES[lowest] < self._abs_min:
            smallest = bits[bits >> np.uint32(_SHIFT) == lowest].min()
            self._abs_min = min(self._abs_min, float(smallest.view(np.float32)))

    def result(self) -> TensorRange:
        histogram = self._histogram
        count = int(histogram.sum())
        non_finite = int(histogram[_INF_BIN:].sum())
        zeros = int(histogram[0])  # exact zeros, and FP32 subnormals below 2^-126: zero for every purpose here
        non_zeros = max(count - zeros - non_finite, 1)
        over = int(histogram[_MAX_BIN + 1 : _INF_BIN].sum()) + self._over
        under = int(histogram[1:_ZERO_BIN].sum()) + self._at_zero
        subnormal = int(histogram[_ZERO_BIN:_NORMAL_BIN].sum()) - self._at_zero
        seen = self._maximum >= self._minimum
        low, high = (self._minimum, self._maximum) if seen else (0.0, 0.0)
        return TensorRange(
            name=self._name,
            count=count,
            zeros=zeros,
            non_finite=non_finite,
            nans=self._nans,
            positive_inf=self._positive_inf,
            minimum=low,
            maximum=high,
            abs_max=max(abs(low), abs(high)),
            abs_min=0.0 if math.isinf(self._abs_min) else self._abs_min,
            overflow_share=over / count if count else 0.0,
            underflow_share=under / non_zeros,
            subnormal_share=subnormal / non_zeros,
            shape=self._shape,
            histogram=histogram.copy(),
        )


def range_of(name: str, values: npt.NDArray[np.floating]) -> TensorRange:
    """The range of one array (a weight)."""
    collector = RangeCollector(name)
    collector.update(np.asarray(values))
    return collector.result()
