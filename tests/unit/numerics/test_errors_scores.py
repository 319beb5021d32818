"""Reading a task's metrics, and the identity of test data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deploychain.errors import StageError
from deploychain.numerics.scores import data_sha256, read_classes, read_scores


def test_numbers_of_every_kind_are_read() -> None:
    got = read_scores({"a": 0.5, "b": np.float32(0.25), "c": np.array(2), "d": True}, 3)
    assert got.metrics == {"a": 0.5, "b": 0.25, "c": 2.0, "d": 1.0}
    assert got.per_sample == {} and got.notes == ()


def test_per_sample_scores_give_the_mean_and_the_classes() -> None:
    got = read_scores({"hit": [1, 0, 1, 1]}, 4, ("10", "2", "2", "10"))
    assert got.metrics == {"hit": 0.75} and got.per_sample == {"hit": (1.0, 0.0, 1.0, 1.0)}
    assert got.per_class == {"hit": {"2": 0.5, "10": 1.0}}
    assert list(got.per_class["hit"]) == ["2", "10"]  # numbers in their order, not as text


def test_one_class_that_is_not_finite_leaves_the_others() -> None:
    got = read_scores({"hit": [1.0, math.nan]}, 2, ("a", "b"))
    assert got.metrics == {"hit": None} and got.per_class == {"hit": {"a": 1.0, "b": None}}
    assert got.notes == ("metric hit is not finite for 1 of 2 samples, so its mean is unknown",)


def test_classes_without_a_per_sample_metric_are_told() -> None:
    assert read_scores({"map": 0.3}, 2, ("a", "b")).notes == ("no metric is per sample, so none can be told per class",)


def test_infinite_metric_is_unknown() -> None:
    got = read_scores({"loss": math.inf}, 2)
    assert got.metrics == {"loss": None} and got.notes == ("metric loss is inf",)


@pytest.mark.parametrize("raw", [[1, 2], [[1], [2], [3]], np.zeros((3, 1)), "high", None, {"x": 1}])
def test_wrong_shapes_and_types_are_named(raw: object) -> None:
    with pytest.raises(StageError, match="metric 'm'"):
        read_scores({"m": raw}, 3)


def test_classes_must_be_one_per_sample() -> None:
    assert read_classes(np.array([3, 1]), 2) == ("3", "1")
    for wrong in ([1], np.zeros((2, 2))):
        with pytest.raises(StageError, match="for 2 samples"):
            read_classes(wrong, 2)


def test_identity_depends_on_everything_that_is_evaluated() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 1, 0])
    base = data_sha256({"x": x}, y)
    assert base == data_sha256({"x": x.copy(order="F")}, y.copy()) and len(str(base)) == 64
    others = [
        data_sha256({"z": x}, y),
        data_sha256({"x": x.astype(np.float64)}, y),
        data_sha256({"x": x.reshape(2, 3)}, y),
        data_sha256({"x": x[::-1]}, y),
        data_sha256({"x": x}, y.astype(np.int32)),
        data_sha256({"x": x}, list(y)),
        data_sha256({"x": x}, None),
        data_sha256({"x": x}, [{"boxes": x, "label": "cat"}]),
        data_sha256({"x": x}, [{"boxes": x, "label": "dog"}]),
        data_sha256({"x": x}, [["ab"], ["c"]]),
        data_sha256({"x": x}, [["a"], ["bc"]]),
    ]
    assert None not in others and len({base, *others}) == len(others) + 1


def test_identity_of_targets_without_stable_content_is_unknown() -> None:
    assert data_sha256({"x": np.ones(2)}, [object()]) is None
    assert data_sha256({"x": np.zeros((0, 3)), "s": np.array(["a", "bc"])}, ()) is not None
