"""The decision rule, and the records of what was decided: Check, Verdict, GateResult."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal

from deploychain.gate.noise import Loss
from deploychain.records import GATE_SCHEMA, to_json


class Status(str, Enum):
    """What became of one check."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INCOMPLETE = "incomplete"  # the evidence is missing
    NOT_COMPARABLE = "not-comparable"  # the baseline is missing, damaged, or measured with something else
    WAIVED = "waived"
    NOTE = "note"  # said, not judged


class Verdict(str, Enum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INCOMPLETE = "incomplete"
    NOT_COMPARABLE = "not-comparable"


EXIT_CODES = {
    Verdict.PASS: 0,
    Verdict.FAIL: 1,
    Verdict.NOT_COMPARABLE: 3,
    Verdict.INCOMPLETE: 4,
    Verdict.INCONCLUSIVE: 5,
}
# The worst first: a proven regression is the most that can be said; then what made a comparison impossible.
_ORDER = (Status.FAIL, Status.NOT_COMPARABLE, Status.INCOMPLETE, Status.INCONCLUSIVE, Status.WAIVED, Status.NOTE)


@dataclass(frozen=True, slots=True)
class Check:
    """One question that the gate asked, and its answer.

    ``value``, ``baseline`` and ``limit`` are in the terms of ``kind`` (per cent kept, metric units, layers, ms);
    ``low``, ``high`` and ``margin`` bound the *loss* that the decision rule looked at.
    """

    stage: str
    kind: str
    status: Status
    message: str
    metric: str = ""
    node: str = ""
    module: str = ""
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    severity: Literal["error", "warning"] = "error"
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    needed: int | None = None  # more samples or repeats that would settle it
    how: str = ""
    rule: tuple[str | int, ...] = ()  # where the limit stands: ("accuracy", 0, "retention")
    source: str = ""  # file:line of the module's code
    look: str = ""  # the command that looks deeper

    @property
    def level(self) -> str:
        """error, warning or note: how the outputs show it."""
        if self.status in (Status.PASS, Status.WAIVED, Status.NOTE):
            return "note"
        return "warning" if self.severity == "warning" else "error"

    def finding(self) -> dict[str, Any]:
        """The form of the documented JSON."""
        text = self.message if self.status is Status.FAIL else f"{self.status.value}: {self.message}"
        record = {
            "stage": self.stage,
            "metric": self.metric or None,
            "kind": self.kind,
            "node": self.node or None,
            "module": self.module or None,
            "value": self.value,
            "baseline": self.baseline,
            "limit": self.limit,
            "severity": self.level,
            "message": f"{text} [{self.look}]" if self.look else text,
        }
        return {key: to_json(value) for key, value in record.items()}


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

    Fail: the estimate is beyond the limit and the lower bound beyond `null`. Pass: the upper bound is within the margin,
    and the estimate is within the limit or cannot be told from no loss (one sample of a thousand is more than a limit of
    0.1 %). Else inconclusive. When nothing is known about the noise, the estimate is held against the limit (pass) and
    the margin (fail).
    """
    if loss.bounds is None:
        if loss.estimate <= limit:
            return Status.PASS, None, None
        return (Status.FAIL if loss.estimate > margin and math.isfinite(margin) else Status.INCONCLUSIVE), None, None
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
    if room <= 0 or not math.isfinite(room) or width <= 0:
        return None
    more = math.ceil(loss.samples * ((width / room) ** 2 - 1))
    return more if 0 < more <= 100 * loss.samples else None


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict and everything that led to it."""

    verdict: Verdict
    checks: tuple[Check, ...]
    on_inconclusive: Literal["fail", "warn"] = "fail"
    changes: tuple[str, ...] = ()  # what differs from the baseline and may: versions, expected changes
    baseline_path: str = ""
    baseline_created: str = ""
    history: tuple[Any, ...] = field(default=())  # baseline.Entry records, for plots

    @property
    def exit_code(self) -> int:
        if self.verdict is Verdict.INCONCLUSIVE and self.on_inconclusive == "warn":
            return 0
        return EXIT_CODES[self.verdict]

    @property
    def findings(self) -> tuple[Check, ...]:
        """Every check that is not a plain pass, the worst first."""
        found = [c for c in self.checks if c.status is not Status.PASS]
        return tuple(sorted(found, key=_worst_first))

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON of ``deploychain gate --json``."""
        return {
            "schema": GATE_SCHEMA,
            "verdict": self.verdict.value,
            "findings": [check.finding() for check in self.findings],
        }


def _worst_first(check: Check) -> tuple[int, int, float]:
    excess = 0.0
    if check.loss is not None and check.margin:
        excess = check.loss / check.margin if math.isfinite(check.margin) else check.loss
    return (check.level != "error", _ORDER.index(check.status), -excess)


def conclude(checks: Sequence[Check]) -> Verdict:
    """The verdict of a run: the worst of the checks that may decide. A run without a judgement is incomplete."""
    deciding = [c.status for c in checks if c.severity == "error"]
    for status in _ORDER[:4]:
        if status in deciding:
            return Verdict(status.value)
    return Verdict.PASS if Status.PASS in deciding else Verdict.INCOMPLETE


def waive(check: Check, reason: str) -> Check:
    """The same check, shown and not counted."""
    return replace(check, status=Status.WAIVED, message=f"{check.message} (was {check.status.value}; waived: {reason})")
