"""How a test set is cut into the batches that an engine's optimisation profile allows. (Running one needs a GPU.)"""

from __future__ import annotations

import numpy as np
import pytest

from deploychain.backends.trt_run import batch_range, padded_batches


@pytest.mark.parametrize(
    ("profile", "asked", "expected"),
    [
        ([(1, 16)], 100, (1, 16)),  # the profile's maximum wins
        ([(1, 16)], 4, (1, 4)),
        ([(8, 8)], 4, (8, 8)),  # a fixed batch
        ([(4, 32)], 2, (4, 4)),
        ([(1, 16), (2, 8)], 100, (2, 8)),  # several inputs: what all of them allow
    ],
)
def test_batch_lies_inside_the_profile(profile: list[tuple[int, int]], asked: int, expected: tuple[int, int]) -> None:
    assert batch_range(profile, asked) == expected


def test_every_sample_is_run_once_and_padding_is_marked() -> None:
    cut = list(padded_batches(10, low=3, high=4))
    assert [rows.tolist() for rows, _ in cut] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 9]]
    assert [count for _, count in cut] == [4, 4, 2]
    kept = np.concatenate([rows[:count] for rows, count in cut])
    assert kept.tolist() == list(range(10))
