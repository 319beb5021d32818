"""How uncertain a measured loss is: paired bootstrap, unpaired normal, Wilson and Student's t intervals.

Every estimator gives a `Loss`: how much worse the candidate is than its reference, in the unit of the limit that it is
held against (metric units, or per cent of the reference). Only numpy and a seeded generator: the same record gives the
same verdict on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Unit = Literal["absolute", "percent"]
Direction = Literal["higher", "lower"]

# Above this many samples the bootstrap resamples sums over random bins: for a mean that has the same variance, and the
# cost stays fixed.
_BINS = 4000


@dataclass(frozen=True, slots=True)
class Loss:
    """An estimated loss and its bounds.

    Attributes:
        estimate: the measured loss; negative is a gain.
        bounds: (tail of the lower bound, tail of the upper bound) -> (lower, upper); None when nothing is known about
            the noise.
        samples: what more of would narrow the bounds: samples, or repeats; 0 when unknown.
        how: the method, in words for the report.
        resolution: where there are no bounds, the loss that this many samples could not show (0: not known).
        within: where there are no bounds, what the scatter inside one run alone allows; the true bounds are wider.
    """

    estimate: float
    bounds: Callable[[float, float], tuple[float, float]] | None
    samples: int
    how: str
    resolution: float = 0.0
    within: tuple[float, float] | None = None


def _z(tail: float) -> float:
    return NormalDist().inv_cdf(1 - tail)


def _loss(reference: Floats, value: Floats, direction: Direction, unit: Unit) -> Floats:
    """Loss of means: absolute, or in per cent of the reference. Retention is 100 minus the latter.

    Where lower is better, retention is reference / value, so that 99 % means the same in both directions.
    """
    with np.errstate(all="ignore"):
        if unit == "absolute":
            return np.asarray(reference - value if direction == "higher" else value - reference, dtype=np.float64)
        kept = value / reference if direction == "higher" else reference / value
        return np.asarray(100.0 * (1.0 - kept), dtype=np.float64)


def point_loss(reference: float, value: float, direction: Direction, unit: Unit) -> float | None:
    """The loss between two numbers; None where it is undefined: a percentage of nothing, an overflow."""
    if unit == "percent" and (reference <= 0 or (direction == "lower" and value <= 0)):
        return None
    loss = float(_loss(np.asarray(reference, float), np.asarray(value, float), direction, unit))
    return loss if math.isfinite(loss) else None


def _is_binary(values: Floats) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))


def _binary_draws(
    reference: Floats,
    value: Floats,
    direction: Direction,
    rng: np.random.Generator,
    draws: int,
    extra: Literal["loss", "gain"],
) -> tuple[Floats, Floats]:
    """Bayesian bootstrap (Rubin 1981) over the four cells of a 2x2 table, with one pseudo-pair against the bound.

    The ordinary bootstrap of n pairs without a changed decision has no width at all. One more lost pair for the upper
    bound and one more gained pair for the lower bound make the bounds those of Clopper and Pearson when the other kind
    of change does not occur (upper bound of 0 in n: the rule of three), so they are never too narrow at small counts.
    """
    n = len(reference)
    both = float(np.sum((reference == 1) & (value == 1)))
    down = float(np.sum((reference == 1) & (value == 0)))
    up = float(np.sum((reference == 0) & (value == 1)))
    neither = n - both - down - up
    worse_is_down = direction == "higher"
    if (extra == "loss") == worse_is_down:
        down += 1
    else:
        up += 1
    # Gamma(0) is the point mass at zero that Dirichlet(0) stands for; numpy returns it as such.
    g = [rng.gamma(shape, size=draws) if shape > 0 else np.zeros(draws) for shape in (both, down, up, neither)]
    total = g[0] + g[1] + g[2] + g[3]
    return (g[0] + g[1]) / total, (g[0] + g[2]) / total


def _resampled(reference: Floats, value: Floats, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
    """Means of paired bootstrap resamples: two arrays of `draws`."""
    n = len(reference)
    if n > _BINS:
        order = rng.permutation(n)[: n - n % _BINS].reshape(_BINS, -1)
        reference, value = reference[order].mean(axis=1), value[order].mean(axis=1)
        n = _BINS
    pair = np.stack([reference, value], axis=1)
    means = np.empty((draws, 2))
    step = max(1, 4_000_000 // n)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        means[start : start + size] = pair[rng.integers(0, n, (size, n))].mean(axis=1)
    return means[:, 0], means[:, 1]


def _widened(estimate: float, low: float, high: float, tails: tuple[float, float], noise: float) -> tuple[float, float]:
    """Add an independent noise (standard deviation) to both half-widths, in quadrature."""
    if noise <= 0:
        return low, high
    down = math.hypot(estimate - low, _z(tails[0]) * noise)
    up = math.hypot(high - estimate, _z(tails[1]) * noise)
    return estimate - down, estimate + up


def paired(
    reference: Sequence[float] | Floats,
    value: Sequence[float] | Floats,
    direction: Direction,
    unit: Unit,
    *,
    draws: int,
    seed: int,
    noise: float = 0.0,
) -> Loss:
    """Paired bootstrap over samples.

    Args:
        reference, value: one number per sample, the same samples in the same order.
        noise: standard deviation of the loss between rebuilds, in the unit of the loss.
    """
    ref, val = np.asarray(reference, dtype=np.float64), np.asarray(value, dtype=np.float64)
    if ref.shape != val.shape or ref.ndim != 1 or not len(ref):
        raise ValueError("paired bootstrap needs two equally long, non-empty series")
    estimate = float(_loss(ref.mean(), val.mean(), direction, unit))
    binary = _is_binary(ref) and _is_binary(val)
    changed = f", {int(np.sum(ref != val))} changed" if binary else ""

    @cache
    def losses() -> tuple[Floats, Floats]:
        """Draws for the lower and for the upper bound, made when they are first asked for."""
        rng = np.random.default_rng(seed)
        if not binary:
            both = _loss(*_resampled(ref, val, rng, draws), direction, unit)
            return both, both
        gain = _loss(*_binary_draws(ref, val, direction, rng, draws, "gain"), direction, unit)
        return gain, _loss(*_binary_draws(ref, val, direction, rng, draws, "loss"), direction, unit)

    def bounds(tail_low: float, tail_high: float) -> tuple[float, float]:
        down, up = losses()
        # Far in the tail there are few draws: the normal bound is taken where it is the wider one.
        low = min(float(np.quantile(down, tail_low)), estimate - _z(tail_low) * float(np.std(down)))
        high = float(np.quantile(up, 1 - tail_high))
        return _widened(estimate, min(low, estimate), max(high, estimate), (tail_low, tail_high), noise)

    how = f"paired bootstrap over {len(ref)} samples{changed}"
    return Loss(estimate, bounds, len(ref), how)


def unpaired(
    reference: tuple[float, float, int],
    value: tuple[float, float, int],
    direction: Direction,
    unit: Unit,
    *,
    noise: float = 0.0,
) -> Loss:
    """Normal interval from (mean, standard deviation of a sample, n) of two series that cannot be paired."""
    (ref, ref_sd, ref_n), (val, val_sd, val_n) = reference, value
    estimate = float(_loss(np.asarray(ref), np.asarray(val), direction, unit))
    error = math.sqrt(ref_sd**2 / ref_n + val_sd**2 / val_n)
    if unit == "percent":  # first-order: the reference is far from zero by comparison with its error
        error *= 100.0 / abs(ref if direction == "higher" else val)

    def bounds(tail_low: float, tail_high: float) -> tuple[float, float]:
        low, high = estimate - _z(tail_low) * error, estimate + _z(tail_high) * error
        return _widened(estimate, low, high, (tail_low, tail_high), noise)

    return Loss(estimate, bounds, val_n, f"unpaired, {ref_n} and {val_n} samples")


def declared(estimate: float, noise: float) -> Loss:
    """Normal interval from a declared standard deviation of the loss."""

    def bounds(tail_low: float, tail_high: float) -> tuple[float, float]:
        return estimate - _z(tail_low) * noise, estimate + _z(tail_high) * noise

    return Loss(estimate, bounds, 0, "declared noise")


def certain(estimate: float, how: str) -> Loss:
    """A loss without any noise."""
    return Loss(estimate, lambda low, high: (estimate, estimate), 0, how)


def unknown(estimate: float, samples: int = 0, scale: float = 1.0) -> Loss:
    """A loss of which nothing but the number is known.

    Args:
        samples: what it was measured on, if known: n of them cannot exclude a loss of 3 / n (the rule of three).
        scale: the loss of everything, in the unit of the loss: 100 for per cent.
    """
    return Loss(estimate, None, 0, "noise unknown", 3.0 * scale / samples if samples > 0 else 0.0)


def share(count: float, n: int) -> Loss:
    """Loss = 1 - share; Wilson's score interval of a share of `n` samples."""
    p = 1.0 - count / n

    def bound(tail: float, sign: int) -> float:
        z = _z(tail)
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return centre + sign * half

    return Loss(p, lambda low, high: (max(0.0, bound(low, -1)), min(1.0, bound(high, 1))), n, f"Wilson, {n} samples")


def mean(values: Sequence[float], direction: Direction, *, draws: int, seed: int, noise: float = 0.0) -> Loss:
    """One series against a fixed number: loss = -mean where higher is better, +mean where lower is."""
    series = np.asarray(values, dtype=np.float64)
    fixed = np.ones_like(series) if direction == "higher" else np.zeros_like(series)
    pair = paired(fixed, series, direction, "absolute", draws=draws, seed=seed, noise=noise)
    shift = 1.0 if direction == "higher" else 0.0

    def bounds(tail_low: float, tail_high: float) -> tuple[float, float]:
        assert pair.bounds is not None
        low, high = pair.bounds(tail_low, tail_high)
        return low - shift, high - shift

    return Loss(pair.estimate - shift, bounds, len(series), f"bootstrap over {len(series)} samples")


def slowdown(
    reference: Sequence[float],
    value: Sequence[float],
    *,
    draws: int,
    seed: int,
    noise: float = 0.0,
    parts: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> Loss:
    """Latency increase in per cent from repeats (medians of independent builds or runs).

    Two or more repeats on each side: Student's t interval of the log ratio, with the relative spread pooled (builds of
    one network on one device vary alike, and pooling is what makes three repeats enough). Fewer: the declared noise of
    one repeat in per cent, or unknown.

    Args:
        parts: medians of parts of one run, on each side. They are no repeats: what differs between two builds or two
            starts is the same in all of them. Their scatter only says how far one run is from certain.
    """
    ref, val = np.log(np.asarray(reference, dtype=np.float64)), np.log(np.asarray(value, dtype=np.float64))
    difference = float(val.mean() - ref.mean())
    estimate = 100.0 * (math.exp(difference) - 1.0)
    scale = math.sqrt(1 / len(ref) + 1 / len(val))
    if min(len(ref), len(val)) < 2:
        return declared(estimate, noise * scale) if noise > 0 else _one_run(estimate, parts, draws=draws, seed=seed)
    degrees = len(ref) + len(val) - 2
    squares = _squares(ref) + _squares(val)
    spread = math.hypot(math.sqrt(squares / degrees), noise / 100.0)
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):  # two repeats that disagree wildly: the bound is infinite
        increase = 100.0 * (np.exp(difference + spread * scale * rng.standard_t(degrees, 10 * draws)) - 1.0)

    def bounds(tail_low: float, tail_high: float) -> tuple[float, float]:
        return float(np.quantile(increase, tail_low)), float(np.quantile(increase, 1 - tail_high))

    return Loss(estimate, bounds, len(val), f"{len(ref)} and {len(val)} repeats")


def _squares(logs: Floats) -> float:
    return float(np.sum((logs - logs.mean()) ** 2)) if len(logs) else 0.0


def _one_run(
    estimate: float, parts: tuple[Sequence[float], Sequence[float]], *, draws: int, seed: int, tail: float = 0.05
) -> Loss:
    """One run on a side: how builds vary is not known; ``within`` holds what the parts of the runs allow.

    A run is taken to be no more certain than one of its parts (they follow each other, so their mean is not better by
    the root of their number), at 95 % on each side.
    """
    logs = [np.log(np.asarray(side, dtype=np.float64)) for side in parts]
    degrees = sum(max(0, len(side) - 1) for side in logs)
    how = "one run on a side, so that the variation between builds is not known"
    if degrees < 1:
        return Loss(estimate, None, 0, how)
    spread = math.sqrt(2.0 * sum(map(_squares, logs)) / degrees)
    with np.errstate(over="ignore"):
        drawn = np.exp(spread * np.random.default_rng(seed).standard_t(degrees, 10 * draws))
    low, high = (100.0 * ((1.0 + estimate / 100.0) * float(np.quantile(drawn, q)) - 1.0) for q in (tail, 1.0 - tail))
    how += f"; the parts of each alone allow {low:+.3g} % to {high:+.3g} %"
    return Loss(estimate, None, 0, how, within=(min(low, estimate), max(high, estimate)))
