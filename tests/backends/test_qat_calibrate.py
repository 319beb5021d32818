"""Ranges from data: against distributions whose ranges are known."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="QAT needs torch")

import torch

from deploychain.backends.qat_calibrate import BINS, Observer, range_of
from deploychain.errors import StageError

pytestmark = pytest.mark.chain


def observed(*batches: np.ndarray) -> Observer:
    observer = Observer("layer.input_quantizer")
    for batch in batches:
        observer.update(torch.from_numpy(np.asarray(batch, np.float32)))
    return observer


def test_percentile_of_a_uniform_distribution() -> None:
    observer = observed(np.linspace(-10, 10, 200_001))
    assert range_of(observer, "percentile", 90.0) == pytest.approx(9.0, rel=1e-3)
    assert range_of(observer, "percentile", 99.9) == pytest.approx(9.99, rel=1e-3)
    assert range_of(observer, "max") == 10.0


def test_percentile_of_a_normal_distribution() -> None:
    values = np.random.default_rng(0).normal(0, 2, 1_000_000)
    # 99 % of |N(0, 2)| lie below 2 * 2.5758.
    assert range_of(observed(values), "percentile", 99.0) == pytest.approx(2 * 2.5758, rel=5e-3)


def test_the_order_and_size_of_batches_do_not_matter_much() -> None:
    values = np.random.default_rng(1).exponential(1, 100_000)
    rising = np.sort(values)
    whole, small_first = observed(values), observed(*np.array_split(rising, 50))
    assert small_first.total == whole.total == 100_000
    exact = np.quantile(values, 0.999)
    for observer in (whole, small_first):
        assert range_of(observer, "percentile", 99.9) == pytest.approx(exact, rel=0.01)


def test_memory_is_bounded_when_the_range_grows_a_million_times() -> None:
    observer = observed(np.array([1e-3]), np.array([1.0]), np.array([1e3]))
    assert observer.counts.shape == (BINS,)
    assert observer.total == 3
    assert range_of(observer, "max") == 1e3


def test_one_outlier_does_not_set_the_range() -> None:
    values = np.concatenate([np.random.default_rng(2).normal(0, 1, 100_000), [100.0]])
    assert range_of(observed(values), "max") == pytest.approx(100.0)
    for method in ("percentile", "entropy"):
        assert 2.5 < range_of(observed(values), method) < 20, method
    assert range_of(observed(values), "mse") < 80  # its error weighs 1e-5 of the values by 100 squared


def test_mse_of_a_uniform_distribution_keeps_nearly_all_of_it() -> None:
    assert range_of(observed(np.linspace(-1, 1, 100_001)), "mse") == pytest.approx(1.0, rel=0.02)


def test_mse_is_the_best_range_by_brute_force() -> None:
    values = np.random.default_rng(3).standard_t(3, 200_000).astype(np.float32)

    def error(amax: float) -> float:
        scale = amax / 127
        return float(((np.clip(np.round(values / scale), -128, 127) * scale - values) ** 2).mean())

    chosen = range_of(observed(values), "mse")
    best = min(error(a) for a in np.linspace(1, float(np.abs(values).max()), 400))
    assert error(chosen) <= best * 1.05


def test_few_grey_levels_do_not_mislead_the_entropy_method() -> None:
    # 17 levels, most values at the largest: a range that clips them has no divergence, and is wrong.
    levels = np.random.default_rng(4).integers(0, 17, 50_000) / 8 - 1
    levels[:20_000] = -1
    assert range_of(observed(levels), "entropy") == pytest.approx(1.0, rel=0.01)


def test_clipped_share_counts_what_lies_beyond() -> None:
    observer = observed(np.linspace(-10, 10, 200_001))
    assert observer.clipped_share(10.0) == 0
    assert observer.clipped_share(9.0) == pytest.approx(0.1, rel=0.02)
    assert observer.clipped_share(9.9) == pytest.approx(0.01, rel=0.05)


def test_only_zeros_give_range_zero_and_nothing_gives_an_error() -> None:
    assert range_of(observed(np.zeros(10)), "percentile") == 0.0
    with pytest.raises(StageError, match=r"layer\.input_quantizer.*no calibration data"):
        range_of(Observer("layer.input_quantizer"), "max")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_name_the_quantiser(bad: float) -> None:
    with pytest.raises(StageError, match=r"layer\.input_quantizer: NaN or infinity"):
        observed(np.array([1.0, bad]))
