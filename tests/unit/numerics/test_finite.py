"""Samples with NaN or infinity are named, whichever artefact they show in."""

from __future__ import annotations

import numpy as np
import pytest

from deploychain.numerics.finite import name_samples, non_finite_notes, non_finite_samples

GOOD = np.ones((5, 2, 2), np.float32)


def with_nan(*places: tuple[int, int, int], value: float = np.nan) -> dict[str, np.ndarray]:
    array = GOOD.copy()
    for place in places:
        array[place] = value
    return {"y": array}


def test_samples_are_found_in_any_array_and_any_place() -> None:
    other = {"half": np.array([[1.0], [np.inf], [2.0], [3.0], [4.0]], np.float16), "k": np.arange(5)}
    assert non_finite_samples(with_nan((3, 1, 1), (3, 0, 0)) | other) == (1, 3)
    assert non_finite_samples({"y": GOOD, "k": np.arange(5), "flag": np.array([True] * 5)}) == ()
    assert non_finite_samples({"y": np.zeros((0, 3), np.float32), "s": np.float32(np.nan)[None][0:0]}) == ()


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ((7,), "sample 7"),
        ((7, 11), "samples 7 and 11"),
        ((1, 2, 3, 4, 5), "samples 1, 2, 3, 4 and 5"),
        (tuple(range(14)), "samples 0, 1, 2, 3, 4 and 9 more"),
    ],
)
def test_names_are_a_line(samples: tuple[int, ...], text: str) -> None:
    assert name_samples(samples) == text


def test_each_case_is_told_apart() -> None:
    bad, clean = with_nan((1, 0, 0), (4, 0, 0)), {"y": GOOD}
    assert non_finite_notes(clean, clean, ()) == ()
    assert non_finite_notes(bad, None, (1, 4)) == (
        "the reference itself has NaN or infinity in the outputs of samples 1 and 4, whose inputs hold some too",
    )
    # Sample 4's input is fine: the model made the NaN itself.
    (note,) = non_finite_notes(bad, bad, (1,))
    assert note == "NaN or infinity in the outputs of samples 1 and 4"
    (note,) = non_finite_notes(clean, bad, (1, 4))
    assert note.startswith("finite outputs where the reference has NaN or infinity: samples 1 and 4 ")
    one, other = non_finite_notes(with_nan((0, 0, 0)), bad, ())
    assert "sample 0" in one and "samples 1 and 4" in other
