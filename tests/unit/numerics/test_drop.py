"""Drops worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deploychain.numerics.drop import Yardstick, relative_error, top1

REFERENCE = {"y": np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0], [1.0, 2.0]], np.float32)}


def test_output_error_in_percent() -> None:
    off = {"y": REFERENCE["y"].copy()}
    off["y"][2, 0] += 0.16  # ||reference|| = sqrt(1 + 1 + 25 + 5) = sqrt(32)
    assert Yardstick(REFERENCE).drop(off) == pytest.approx(100 * 0.16 / math.sqrt(32), rel=1e-4)
    assert Yardstick(REFERENCE).of == "output error, %"


def test_the_worst_output_counts() -> None:
    reference = {"a": np.ones((2, 2), np.float32), "b": np.ones((2, 2), np.float32)}
    outputs = {"a": reference["a"], "b": reference["b"] * 1.5}
    assert relative_error(outputs, reference) == pytest.approx(0.5)


def test_top1_points() -> None:
    metric = top1(np.array([0, 1, 1, 1]))
    yardstick = Yardstick(REFERENCE, metric, "top1")
    swapped = {"y": REFERENCE["y"].copy()}
    swapped["y"][3] = [9.0, 0.0]
    assert yardstick.drop(swapped) == pytest.approx(25.0)
    assert yardstick.of == "top1, points"


def test_a_non_finite_output_is_an_infinite_drop_with_and_without_a_metric() -> None:
    broken = {"y": REFERENCE["y"].copy()}
    broken["y"][0, 1] = np.nan
    assert Yardstick(REFERENCE).drop(broken) == math.inf
    assert Yardstick(REFERENCE, top1(np.array([0, 1, 1, 1])), "top1").drop(broken) == math.inf


def test_integer_outputs_count_by_equality() -> None:
    assert relative_error({"i": np.array([1, 2, 3, 5])}, {"i": np.array([1, 2, 3, 4])}) == 0.25


def test_targets_that_are_no_class_indices_give_no_metric() -> None:
    assert top1(np.ones((3, 4), np.float32)) is None
