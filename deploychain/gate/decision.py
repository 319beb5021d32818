"""The decision rule: fail, pass or inconclusive."""

from __future__ import annotations

import math

from deploychain.gate.noise import Loss
from deploychain.verdicts import Status

# Tail of the bound that tells a small loss from none. Chosen so that one or two lost samples still pass, and that twice
# the limit does not, as soon as there are samples enough to see it (docs/results/gate.md).
_LIKE_NONE = 0.2


def decide(
    loss: Loss, limit: float, margin: float, tails: tuple[float, float], null: float = 0.0
) -> tuple[Status, float | None, float | None]:
    """The decision rule (docs/adr/0007).

    Args:
        loss: the estimated loss with its bounds.
        limit: the largest loss that is allowed.
        margin: the loss that a pass must exclude; infinite: the estimate alone decides a pass.
        tails: tail of the lower bound (a fail), tail of the upper bound (a pass).
        null: the loss that a fail must exclude: none at all, or the limit itself where zero means nothing (a floor).

    Returns:
        status, lower bound, upper bound.

    Fail: the estimate is beyond the limit and the lower bound beyond `null`. Pass: the upper bound is within the
    margin, and the estimate is within the limit or cannot be told from no loss (one sample of a thousand is more than a
    limit of 0.1 %). Else inconclusive. When nothing is known about the noise, the estimate is held against the limit
    (pass) and the margin (fail); too few samples to show a loss of the margin at all are inconclusive, and so is a run
    whose own scatter would not allow the answer.
    """
    if loss.bounds is None:
        low, high = loss.within or (math.inf, -math.inf)
        if loss.estimate <= limit:
            return (Status.PASS if max(loss.resolution, high) <= margin else Status.INCONCLUSIVE), None, None
        beyond = loss.estimate > margin and math.isfinite(margin) and low > null
        return (Status.FAIL if beyond else Status.INCONCLUSIVE), None, None
    if loss.estimate <= limit and not math.isfinite(margin):
        return Status.PASS, None, None  # the bounds would change nothing
    low, high = loss.bounds(*tails)
    if loss.estimate <= limit:
        return (Status.PASS if high <= margin else Status.INCONCLUSIVE), low, high
    if low > null:
        return Status.FAIL, low, high
    like_none = math.isfinite(margin) and loss.bounds(_LIKE_NONE, tails[1])[0] <= null
    return (Status.PASS if like_none and high <= margin else Status.INCONCLUSIVE), low, high


def more_samples(loss: Loss, low: float, high: float, limit: float, margin: float, null: float = 0.0) -> int | None:
    """How many more samples would settle an inconclusive check if the estimate stayed as it is.

    Half-widths shrink with the square root of the number. None: the number of samples is unknown, or more than a
    hundred times as many would be needed.
    """
    if loss.samples <= 0:
        return None
    if loss.estimate <= limit:
        width, room = high - loss.estimate, margin - loss.estimate
    else:
        width, room = loss.estimate - low, loss.estimate - null
    if room <= 0 or not math.isfinite(room) or not math.isfinite(width):
        return None
    ratio = width / room
    return math.ceil(loss.samples * (ratio**2 - 1)) if 1 < ratio <= 10 else None
