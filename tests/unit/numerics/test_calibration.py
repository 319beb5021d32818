"""INT8 ranges against brute force over the values themselves."""

from __future__ import annotations

import numpy as np
import pytest

from deploychain.numerics.calibration import amax_of
from deploychain.numerics.range import range_of


def quantised_error(values: np.ndarray, amax: float) -> float:
    step = amax / 127
    codes = np.clip(np.round(values / step), -127, 127)
    return float(((codes * step - values) ** 2).sum())


@pytest.mark.parametrize("kind", ["normal", "heavy", "relu"])
def test_mse_is_close_to_the_best_of_a_fine_search(kind: str) -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal(40_000).astype(np.float32)
    if kind == "heavy":
        values = random.standard_t(3, 40_000).astype(np.float32)
    elif kind == "relu":
        values = np.maximum(values, 0)
    best = min(quantised_error(values, a) for a in np.abs(values).max() * np.linspace(0.02, 1, 200))
    found = amax_of(range_of("t", values), "mse")
    assert quantised_error(values, found) <= 1.05 * best


def test_max_clips_nothing() -> None:
    values = np.array([0.5, -3.0, 1.0], np.float32)
    assert amax_of(range_of("t", values), "max") == 3.0


def test_percentile_counts_all_elements_zeros_included() -> None:
    values = np.concatenate([np.zeros(9000), np.linspace(1, 2, 1000)]).astype(np.float32)
    # 1 % of 10,000 elements lie above the 900th of the 1,000 non-zeros.
    assert amax_of(range_of("t", values), "percentile", 99.0) == pytest.approx(1.9, rel=1 / 16)


def test_an_all_zero_tensor_has_no_range() -> None:
    assert amax_of(range_of("t", np.zeros(8, np.float32)), "mse") == 0.0
