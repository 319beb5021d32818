"""Error statistics against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploychain.errors import StageError
from deploychain.numerics.errors import ErrorStatistics, compare_outputs


def one(out: object, ref: object) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    return {"y": np.array(out, np.float32)}, {"y": np.array(ref, np.float32)}


def test_known_pair() -> None:
    # ref (3, 4), out (3, 4.5): e = (0, 0.5); ||r||^2 = 25, ||e||^2 = 0.25 -> SNR = 10 log10(100) = 20 dB exactly.
    got = compare_outputs(*one([[3, 4.5]], [[3, 4]]))
    assert got.snr_db == pytest.approx(20.0, abs=1e-12)
    assert got.max_abs_error == 0.5
    assert got.mean_abs_error == 0.25
    assert got.relative_error == pytest.approx(0.1, abs=1e-15)
    # <out, r> = 9 + 18 = 27; ||out|| = sqrt(29.25); ||r|| = 5
    assert got.cosine == pytest.approx(27 / (5 * math.sqrt(29.25)), abs=1e-15)
    assert got.exact is False and got.non_finite == 0 and got.samples == 1
    assert got.worst_samples == (0,)


def test_orthogonal_and_opposite() -> None:
    assert compare_outputs(*one([[0, 1]], [[1, 0]])).cosine == 0.0
    assert compare_outputs(*one([[-2, 0]], [[1, 0]])).cosine == -1.0


def test_equal_outputs_are_exact_and_name_no_worst_sample() -> None:
    got = compare_outputs(*one([[1, 2], [4, 3]], [[1, 2], [4, 3]]))
    assert got.exact is True and got.notes == ()
    assert (got.max_abs_error, got.mean_abs_error, got.relative_error) == (0.0, 0.0, 0.0)
    assert got.cosine == pytest.approx(1.0)
    assert got.snr_db is None  # infinite
    assert got.worst_samples == ()
    assert got.agreement == 1.0


def test_zero_reference_leaves_ratios_unknown() -> None:
    got = compare_outputs(*one([[0.5, 0]], [[0, 0]]))
    assert got.max_abs_error == 0.5
    assert got.relative_error is None and got.snr_db is None and got.cosine is None
    assert compare_outputs(*one([[0, 0]], [[0, 0]])).relative_error == 0.0


def test_non_finite_values_are_counted_and_errors_become_unknown() -> None:
    got = compare_outputs(*one([[1, np.nan], [np.inf, 2], [5, 6]], [[1, 2], [3, 2], [5, 7]]))
    assert got.non_finite == 2
    assert got.exact is False
    assert got.max_abs_error is None and got.mean_abs_error is None and got.snr_db is None and got.cosine is None
    assert set(got.worst_samples[:2]) == {0, 1} and got.worst_samples[2] == 2
    # Row 0 holds a NaN and decides nothing; row 1 decides column 0 as the reference does; row 2 column 1.
    assert got.agreement == pytest.approx(2 / 3)


def test_equal_infinities_are_no_error() -> None:
    masked = [[1, -np.inf], [2, 3]]
    got = compare_outputs(*one(masked, masked))
    assert got.exact is True and got.non_finite == 1 and got.max_abs_error == 0.0
    shifted = compare_outputs(*one([[1.5, -np.inf], [2, 3]], masked))
    assert shifted.max_abs_error == 0.5 and shifted.mean_abs_error == 0.125
    assert compare_outputs(*one([[1, np.inf]], [[1, -np.inf]])).max_abs_error is None


def test_two_outputs_together_and_apart() -> None:
    out = {"a": np.array([[1.0], [2.0]], np.float32), "b": np.array([[10.0, 0.0], [0.0, 12.0]], np.float32)}
    ref = {"a": np.array([[1.0], [2.5]], np.float32), "b": np.array([[10.0, 0.0], [0.0, 10.0]], np.float32)}
    got = compare_outputs(out, ref)
    assert got.max_abs_error == 2.0 and got.mean_abs_error == pytest.approx(2.5 / 6)
    assert got.relative_error == pytest.approx(math.sqrt(4.25) / math.sqrt(1 + 6.25 + 200))
    assert got.per_output["a"]["max_abs_error"] == 0.5
    assert got.per_output["b"]["relative_error"] == pytest.approx(2 / math.sqrt(200))
    assert got.agreement == 1.0 and got.agreement_output == "b"  # "a" has one column: no decision to read
    assert "agreement" not in got.per_output["a"]


def test_integer_outputs_are_compared_by_equality_only() -> None:
    out = {"k": np.array([[1, 2], [3, 400]], np.int64)}
    ref = {"k": np.array([[1, 2], [3, 4]], np.int64)}
    got = compare_outputs(out, ref)
    assert got.exact is False
    assert got.per_output["k"] == {"equal": 0.75}
    assert got.max_abs_error is None and got.agreement is None  # nothing invented for indices
    assert got.worst_samples == (1,)
    assert compare_outputs(ref, ref).exact is True


def test_decisions_are_not_invented_for_other_shapes() -> None:
    images = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    assert compare_outputs({"y": images}, {"y": images}).agreement is None
    column = images[:, :1, 0]
    assert compare_outputs({"y": column}, {"y": column}).agreement is None


def test_worst_samples_are_the_largest_errors_across_batches() -> None:
    errors = np.array([0.1, 0.9, 0.0, 0.5, 0.7, 0.2], np.float32)
    ref = np.ones((6, 3), np.float32)
    out = ref.copy()
    out[:, 1] += errors
    statistics = ErrorStatistics(worst=3)
    for rows in (slice(0, 2), slice(2, 5), slice(5, 6)):
        statistics.update({"y": out[rows]}, {"y": ref[rows]})
    assert statistics.summary().worst_samples == (1, 4, 3)
    assert statistics.summary().samples == 6


def test_sums_do_not_lose_small_errors() -> None:
    # 4 million errors of 2^-24 on values of 1: a float32 sum of squares would stall; float64 gives 2^-24 exactly.
    ref = np.ones((4, 1_000_000), np.float32)
    out = np.nextafter(ref, np.float32(0))
    got = compare_outputs({"y": out}, {"y": ref})
    assert got.mean_abs_error == 2.0**-24
    assert got.relative_error == pytest.approx(2.0**-24, rel=1e-12)


@given(st.integers(1, 9), st.integers(1, 7), st.integers(0, 2**31))
def test_batches_do_not_change_the_result(samples: int, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ref = rng.standard_normal((samples, 4)).astype(np.float32)
    out = (ref + rng.normal(0, 0.1, ref.shape)).astype(np.float32)
    statistics = ErrorStatistics()
    for start in range(0, samples, batch):
        statistics.update({"y": out[start : start + batch]}, {"y": ref[start : start + batch]})
    got, whole = statistics.summary(), compare_outputs({"y": out}, {"y": ref})
    assert got.worst_samples == whole.worst_samples and got.agreement == whole.agreement
    for name in ("max_abs_error", "mean_abs_error", "relative_error", "cosine", "snr_db"):
        assert getattr(got, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    expected = np.linalg.norm(out.astype(float) - ref.astype(float)) / np.linalg.norm(ref.astype(float))
    assert got.relative_error == pytest.approx(expected, rel=1e-12)


def test_missing_output_and_wrong_shape_are_named() -> None:
    y = np.ones((2, 3), np.float32)
    with pytest.raises(StageError, match="'boxes' of the reference is missing; found y"):
        compare_outputs({"y": y}, {"boxes": y})
    with pytest.raises(StageError, match=r"'y' has shape \[2, 2\], the reference \[2, 3\]"):
        compare_outputs({"y": y[:, :2]}, {"y": y})


def test_no_samples_prove_nothing() -> None:
    got = compare_outputs({"y": np.ones((0, 3), np.float32)}, {"y": np.ones((0, 3), np.float32)})
    assert got.samples == 0 and got.exact is False and got.max_abs_error is None and got.agreement is None


def test_a_reference_that_decides_all_samples_alike_makes_agreement_unknown() -> None:
    # Scores differ, decisions do not: column 1 wins for every sample.
    ref = np.array([[0, 1], [2, 5], [-3, -1], [0, 9]], np.float32)
    got = compare_outputs({"y": ref + 0.25}, {"y": ref})
    assert got.agreement is None and got.agreement_output == "y"
    assert got.per_output["y"]["agreement"] is None  # there are decisions, and they tell nothing
    assert got.notes == ("agreement is unknown: by 'y' the reference decides class 1 for every sample",)
    assert got.max_abs_error == 0.25  # errors are what they are
    out = ref.copy()
    out[2] = [1, 0]
    (note,) = compare_outputs({"y": out}, {"y": ref}).notes
    assert note.endswith("; 1 of 4 are decided otherwise here")
    ref[2] = [1, 0]  # one sample of the other class, and agreement is told again
    got = compare_outputs({"y": ref}, {"y": ref})
    assert got.agreement == 1.0 and got.notes == ()


def test_one_class_is_seen_across_batches_and_rows_without_a_decision_do_not_count() -> None:
    statistics = ErrorStatistics()
    for row in ([[0, 1]], [[np.nan, 5]], [[2, 3]]):
        statistics.update(*one(row, row))
    assert statistics.summary().agreement is None
    statistics.update(*one([[3, 2]], [[3, 2]]))
    assert statistics.summary().agreement == 0.75  # the row with NaN agrees with nothing


def test_another_output_does_not_stand_in_for_the_one_that_tells_nothing() -> None:
    ref = {"a": np.array([[0, 1], [0, 2]], np.float32), "b": np.array([[0, 1], [2, 0]], np.float32)}
    got = compare_outputs(ref, ref)
    assert got.agreement is None and got.agreement_output == "a" and got.per_output["b"]["agreement"] == 1.0


def test_a_reference_that_does_not_tell_samples_apart_is_told() -> None:
    same = np.tile(np.array([[0.5, 2.0]], np.float32), (3, 1))
    got = compare_outputs({"y": same}, {"y": same})
    assert got.agreement is None and got.exact is True
    assert got.notes[1] == "output 'y' of the reference is the same for all 3 samples: to be near it proves nothing"
    index = {"k": np.array([4, 4, 4])}
    assert compare_outputs(index, index).notes == (got.notes[1].replace("'y'", "'k'"),)
    assert compare_outputs({"k": np.array([4, 4, 4])}, {"k": np.array([4, 4, 5])}).notes == ()
    assert compare_outputs(*one([[1.0]], [[1.0]])).notes == ()  # of one sample nothing else could be expected
