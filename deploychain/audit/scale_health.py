"""What a series of loss scales says about training: rule R05, on numbers, without a framework.

There is no healthy band of scales. A summed loss over a large batch sits at 2^5..2^12 for good reason, and a
mean loss may climb past 2^18. What is wrong is a scale that cannot hold: below 1 it shrinks gradients that
it was made to enlarge, and a run of skipped steps means that no scale helps, because the value is non-finite
before it is scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WARM_UP = 20  # the scale starts too high on purpose and halves its way down: the first skips mean nothing
SKIPS_IN_A_ROW = 10
SKIP_RATE = 0.01  # ten to twenty times the rate that growth_interval = 2000 gives at the ceiling
RATE_WINDOW = 1000


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that the scale series shows. `step` counts optimiser steps from 1."""

    rule: str
    severity: str
    step: int
    message: str


def judge_scale(scales: Sequence[tuple[int, float]], skipped: Iterable[int], steps: int) -> tuple[Symptom, ...]:
    """Judge a run of `steps` optimiser steps.

    Args:
        scales: (step, scale after that step) wherever the scale changed, ascending.
        skipped: numbers of the steps that the scaler skipped, counted from 1.
        steps: how many steps were made in all.
    """
    skips = sorted(set(skipped))
    found: list[Symptom] = []
    low = next(((step, scale) for step, scale in scales if scale < 1.0), None)
    if low is not None:
        found.append(
            Symptom(
                "R05",
                "error",
                low[0],
                f"the loss scale fell to {low[1]:g} at step {low[0]}: a scale below 1 shrinks gradients, so the "
                "non-finite values do not come from scaling; find the first non-finite gradient",
            )
        )
    run_end, run = _longest_run(skips)
    if run >= SKIPS_IN_A_ROW:
        found.append(
            Symptom(
                "R05",
                "error",
                run_end,
                f"{run} steps in a row were skipped (steps {run_end - run + 1} to {run_end}): nothing was learnt "
                "there; look for gradients that stay non-finite (R03) or a forward value that overflows (R01, R11)",
            )
        )
    late = [step for step in skips if step > WARM_UP]
    worst = _worst_window(late)
    counted = steps - WARM_UP
    if counted >= RATE_WINDOW and worst is not None and worst[1] > SKIP_RATE * RATE_WINDOW and run < SKIPS_IN_A_ROW:
        found.append(
            Symptom(
                "R05",
                "warning",
                worst[0],
                f"{worst[1]} of {RATE_WINDOW} steps were skipped (up to step {worst[0]}); growth_interval=2000 "
                "costs about 0.04 % at the ceiling",
            )
        )
    return tuple(found)


def _longest_run(skips: Sequence[int]) -> tuple[int, int]:
    """(last step of the longest run of consecutive numbers, its length)."""
    best_end = best = current = 0
    previous: int | None = None
    for step in skips:
        current = current + 1 if previous is not None and step == previous + 1 else 1
        if current > best:
            best_end, best = step, current
        previous = step
    return best_end, best


def _worst_window(skips: Sequence[int]) -> tuple[int, int] | None:
    """(last step, count) of the window of RATE_WINDOW steps that holds most skips."""
    best: tuple[int, int] | None = None
    left = 0
    for right, step in enumerate(skips):
        while step - skips[left] >= RATE_WINDOW:
            left += 1
        if best is None or right - left + 1 > best[1]:
            best = (step, right - left + 1)
    return best
