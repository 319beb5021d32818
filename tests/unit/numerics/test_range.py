"""Ranges against numbers worked out with numpy on the whole array."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploychain.numerics.range import FP16_MAX, RangeCollector, range_of


def test_shares_are_exact_at_the_borders_of_fp16() -> None:
    zero_after_rounding = [2.0**-25, 2.0**-26, -1e-30]
    subnormal = [np.nextafter(np.float32(2.0**-25), 1), 2.0**-15, -(2.0**-24)]
    normal = [2.0**-14, 1.0, 65504.0, -65504.0]
    over = [float(np.nextafter(np.float32(65504), np.inf)), 65520.0, -1e6]
    values = np.array([0.0, 0.0, *zero_after_rounding, *subnormal, *normal, *over], np.float32)
    found = range_of("t", values)
    assert found.count == 15
    assert found.zeros == 2
    assert found.underflow_share == pytest.approx(3 / 13)
    assert found.subnormal_share == pytest.approx(3 / 13)
    assert found.overflow_share == pytest.approx(3 / 15)
    assert found.abs_max == 1e6
    assert found.abs_min == np.float32(1e-30)


def test_underflow_share_agrees_with_what_a_cast_to_fp16_makes_zero() -> None:
    values = (np.random.default_rng(0).standard_normal(100_000) * 1e-7).astype(np.float32)
    lost = np.count_nonzero((values.astype(np.float16) == 0) & (values != 0)) / np.count_nonzero(values)
    assert range_of("t", values).underflow_share == pytest.approx(lost)


@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1.0, 3e3])
def test_storage_snr_is_that_of_a_real_cast(scale: float) -> None:
    values = (np.random.default_rng(1).standard_normal(200_000) * scale).astype(np.float32)
    error = values.astype(np.float16).astype(np.float64) - values
    measured = 10 * math.log10(float((values.astype(np.float64) ** 2).sum() / (error**2).sum()))
    assert range_of("t", values).storage_snr_db == pytest.approx(measured, abs=0.3)


def test_overflow_and_nothing_but_zeros() -> None:
    assert range_of("t", np.array([1.0, 1e5], np.float32)).storage_snr_db == -math.inf
    assert range_of("t", np.zeros(4, np.float32)).storage_snr_db == math.inf


def test_non_finite_values_are_counted_and_do_not_spoil_the_range() -> None:
    found = range_of("t", np.array([np.nan, np.inf, -np.inf, -2.0, 1.0], np.float32))
    assert (found.non_finite, found.nans, found.positive_inf) == (3, 1, 1)
    assert (found.minimum, found.maximum, found.abs_max) == (-2.0, 1.0, 2.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5), st.floats(-20, 8))
def test_batches_give_the_same_as_one_array(seed: int, pieces: int, exponent: float) -> None:
    values = (np.random.default_rng(seed).standard_normal(3000) * 10**exponent).astype(np.float32)
    values[::7] = 0
    collector = RangeCollector("t")
    for piece in np.array_split(values, pieces):
        collector.update(piece)
    one, many = range_of("t", values), collector.result()
    assert many.abs_max == one.abs_max == np.abs(values).max()
    assert many.abs_min == one.abs_min == np.abs(values[values != 0]).min()
    assert (many.histogram == one.histogram).all()
    assert many.overflow_share == pytest.approx(np.mean(np.abs(values) > FP16_MAX))


@pytest.mark.parametrize("share", [1, 50, 99, 99.9])
def test_percentiles_are_right_to_a_sixteenth_of_an_octave(share: float) -> None:
    values = np.abs(np.random.default_rng(2).standard_normal(50_000)).astype(np.float32)
    assert range_of("t", values).percentile(share) == pytest.approx(np.percentile(values, share), rel=1 / 16)


def test_the_largest_extent_of_each_axis_is_remembered() -> None:
    collector = RangeCollector("t")
    collector.update(np.ones((2, 30), np.float32))
    collector.update(np.ones((8, 10), np.float32))
    assert collector.result().shape == (8, 30)
