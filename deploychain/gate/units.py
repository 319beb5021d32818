"""Two numbers of one name in two units: a share beside per cent, milliseconds beside seconds.

No file says in which unit a foreign tool measured. Where two numbers cannot be in one unit they are not compared: a
baseline of 0.97 and a current 97 are not a gain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from deploychain.gate.noise import Direction

# Metrics that are a share of something, by name: at most 1, or at most 100 per cent. Word and character error rates are
# left out (they pass 1), and so is everything that is a time or a loss.
_SHARE = re.compile(
    r"(?:^|[^a-z])(?:acc|accuracy|top[-_ ]?\d+|f1|m?ap|m?iou|dice|auc|auroc|precision|recall|sensitivity|specificity"
    r"|(?:error|miss|false[-_ ]positive|true[-_ ]positive)[-_ ]?rate)(?:[^a-z]|$)"
)
_NO_SHARE = re.compile(r"loss|time|latency|sec|(?:^|[^a-z])(?:ms|us|fps|qps)(?:[^a-z]|$)")
# A change of unit is a factor of 100, and what was measured may have halved or doubled beside it.
_LEAST, _MOST = 50.0, 200.0
# Nothing that a change of a model does makes the same stage on the same device 300 times as fast or as slow, or an
# engine 300 times as large; milliseconds beside seconds or microseconds, and bytes beside kB, do.
_SCALE = 300.0


def is_share(metric: str) -> bool:
    """Whether the metric's name says that it is a share: at most 1, or 100 per cent."""
    name = metric.lower()
    return _SHARE.search(name) is not None and _NO_SHARE.search(name) is None


def are_decisions(series: Sequence[float] | None) -> bool:
    """Whether the values by sample are right or wrong (1 or 0): their mean is a share in 0..1."""
    return bool(series) and all(value in (0.0, 1.0) for value in series or ())


def impossible(metric: str, value: float) -> bool:
    """Whether a share by name is neither in 0..1 nor in 0..100 (-1 is what COCO's tools write for "not measured")."""
    return is_share(metric) and not 0.0 <= value <= 100.0


def mixed(
    metric: str,
    reference: float,
    value: float,
    direction: Direction,
    *,
    reference_decided: bool = False,
    value_decided: bool = False,
) -> bool:
    """Whether two numbers of one metric are certainly, or as good as certainly, a share and a percentage.

    Certain: one is the mean of decisions, the other beyond 1. Else one must lie in 0..1 and the other in 1..100:

    - about a hundred times as large, of a metric that is a share by name or of which more is better (nothing else gets
      50 times better; a loss may);
    - or, for a share by name, better than the reference by any factor. Worse by another factor is judged: it is a loss
      in either unit.

    Args:
        reference_decided, value_decided: whether the number is the mean of values that are 0 or 1 (`are_decisions`).
    """
    if (reference_decided and value > 1.0) or (value_decided and reference > 1.0):
        return True
    low, high = sorted((reference, value))
    if not 0.0 < low <= 1.0 < high <= 100.0:
        return False
    share = is_share(metric)
    if _LEAST <= high / low <= _MOST:
        return share or direction == "higher"
    return share and (value > reference) == (direction == "higher")


def scaled(one: float, two: float) -> bool:
    """Whether two positive measurements are so far apart that only their units can differ."""
    low, high = sorted((one, two))
    return low <= 0.0 or high / low >= _SCALE
